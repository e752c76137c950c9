"""Smaller models of runs, and what they are worth."""

import json
from collections.abc import Generator
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch
from pyarrow import csv
from starlette.testclient import TestClient
from typer.testing import CliRunner

from compress_runs import train_job, write_run
from trainjob import Predictor
from trainjob.cli.app import app
from trainjob.compress import measure
from trainjob.compress.variants import VariantRequest, compress
from trainjob.errors import TransientError, UserError
from trainjob.models import load_model, save_model
from trainjob.runs.contents import read_contents
from trainjob.runs.folder import clear_results
from trainjob.runs.lock import locked
from trainjob.runs.model import variants_of
from trainjob.runs.variants import Variants
from trainjob.serving.app import CPU_ROWS, build_app
from trainjob.serving.config import BATCH_ROWS
from trainjob.storage import Folder

pytestmark = pytest.mark.nightly

Compressed = tuple[Folder, Variants]
NAMES = ["pruned-0.5", "pruned-0.5-int8", "pruned-0.5-onnx"]


@pytest.fixture(scope="module", autouse=True)
def _in_a_hurry() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "SECONDS", 0.0)
        yield


@pytest.fixture(scope="module")
def compressed(tmp_path_factory: pytest.TempPathFactory, text_set: Path) -> Compressed:
    """A text run with all kinds of variants."""
    run = write_run(tmp_path_factory.mktemp("text") / "run", train_job("text", text_set))
    return run, compress(run, VariantRequest(prune=0.5, onnx=True, int8=True))


def test_each_is_measured_beside_the_original(compressed: Compressed) -> None:
    run, found = compressed
    assert variants_of(run) == NAMES
    assert [each.name for each in found.variants] == ["original", *NAMES]
    assert (found.set_name, found.rows, found.of_rows) == ("test", 151, 151)
    original, pruned, int8, onnx = found.variants
    assert int8.size < pruned.size < original.size
    assert int8.size < onnx.size
    assert original.agreement == 1.0
    for each in found.variants:
        assert 0 < each.latency_p50 <= each.latency_p99
        assert each.rows_per_second > 0
        assert each.memory > 50 * 2**20
        assert each.f1.low <= each.f1.value <= each.f1.high
    assert onnx.agreement == pruned.agreement
    assert onnx.f1 == pruned.f1
    assert pruned.accuracy.low > original.accuracy.high, "it was trained on, and the original never was"
    assert read_contents(run).variants == found


def test_one_interface_takes_them_all(compressed: Compressed, text_set: Path) -> None:
    run, _ = compressed
    rows = csv.read_csv(text_set / "test.csv")
    probabilities = {name: Predictor.load(run.uri, variant=name).predict_proba(rows) for name in NAMES}
    for name in NAMES:
        np.testing.assert_allclose(probabilities[name].sum(axis=1), 1, rtol=1e-5)
        folder = Path(run.uri) / "variants" / name
        np.testing.assert_array_equal(Predictor.load(folder).predict_proba(rows), probabilities[name])
        assert Predictor.load(folder).predict([]) == []
    np.testing.assert_allclose(probabilities["pruned-0.5-onnx"], probabilities["pruned-0.5"], atol=1e-4)
    np.testing.assert_allclose(probabilities["pruned-0.5-int8"], probabilities["pruned-0.5"], atol=0.2)


def test_pruning_removes_half_of_the_heads_and_channels(compressed: Compressed) -> None:
    run, _ = compressed
    before, after = (load_model(Path(run.uri) / folder)[0].network for folder in ("model", "variants/pruned-0.5"))
    for layer in range(2):
        shapes = [
            {
                name: list(module.weight.shape)
                for name, module in network.model.layers[layer].named_modules()
                if isinstance(module, torch.nn.Linear)
            }
            for network in (before, after)
        ]
        assert shapes == [
            {"attn.Wqkv": [96, 32], "attn.Wo": [32, 32], "mlp.Wi": [128, 32], "mlp.Wo": [32, 64]},
            {"attn.Wqkv": [48, 32], "attn.Wo": [32, 16], "mlp.Wi": [64, 32], "mlp.Wo": [32, 32]},
        ]


def test_a_pruned_model_is_pruned_and_saved_like_others(compressed: Compressed, tmp_path: Path, text_set: Path) -> None:
    run, _ = compressed
    save_model(*load_model(Path(run.uri) / "variants/pruned-0.5"), tmp_path)
    predictor = Predictor.load(run.uri, variant="pruned-0.5")
    rows = csv.read_csv(text_set / "test.csv")
    np.testing.assert_array_equal(Predictor.load(tmp_path).predict_proba(rows), predictor.predict_proba(rows))


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_take_a_variant_by_name_or_folder(
    compressed: Compressed, name: str, text_set: Path, tmp_path: Path
) -> None:
    run, found = compressed
    data, output = str(text_set / "test.csv"), tmp_path / "out.csv"
    by_name = CliRunner().invoke(app, ["evaluate", run.uri, data, "--variant", name, "--json"], catch_exceptions=False)
    folder = f"{run.uri}/variants/{name}"
    by_folder = CliRunner().invoke(app, ["evaluate", folder, data, "--json"], catch_exceptions=False)
    assert by_name.stdout == by_folder.stdout
    (measured,) = (each for each in found.variants if each.name == name)
    assert json.loads(by_name.stdout)["macro"]["f1"] == pytest.approx(measured.f1.value, abs=0.02)
    arguments = ["predict", run.uri, data, "--variant", name, "--output", str(output)]
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    predicted = csv.read_csv(output)["prediction"].to_pylist()
    assert predicted == Predictor.load(folder).predict(csv.read_csv(data))


@pytest.mark.parametrize("name", NAMES)
def test_a_variant_answers_requests(compressed: Compressed, name: str, text_set: Path) -> None:
    run, _ = compressed
    predictor = Predictor.load(run.uri, variant=name)
    rows = csv.read_csv(text_set / "test.csv").select(["title", "body"])
    with TestClient(build_app(predictor, name)) as client:
        answers = client.post("/predict", json={"rows": rows.to_pylist()}).json()["predictions"]
    # In the server's batches: int8 has one scale for what a whole batch is multiplied with, so others may differ.
    batches = (rows.slice(start, BATCH_ROWS) for start in range(0, len(rows), BATCH_ROWS))
    expected = [label for batch in batches for label in predictor.predict(batch, CPU_ROWS)]
    assert [answer["prediction"] for answer in answers] == expected


def test_the_report_has_a_table_and_a_picture(compressed: Compressed) -> None:
    run, found = compressed
    page = run.read("report.html").decode()
    assert '<table class="table" id="variants">' in page
    assert page.count("pruned-0.5-int8") >= 3, "in the table, in the picture and in its description"
    assert f"{found.variants[0].f1.value:.4f}" in page


def test_what_is_no_variant_is_said(compressed: Compressed, tmp_path: Path, text_set: Path) -> None:
    run, _ = compressed
    with pytest.raises(UserError, match=r"has no variant int8; it has pruned-0\.5, pruned-0\.5-int8, pruned-0\.5-onnx"):
        Predictor.load(run.uri, variant="int8")
    with pytest.raises(UserError, match=r"has no variant \.\./model; it has"):
        Predictor.load(run.uri, variant="../model")
    other = write_run(tmp_path / "other", train_job("text", text_set))
    with pytest.raises(UserError, match="has no variants: if its kind of model allows it, `trainjob compress"):
        Predictor.load(other.uri, variant="int8")


def test_a_damaged_graph_is_told(compressed: Compressed, tmp_path: Path) -> None:
    run, _ = compressed
    for name in ("config.json", "preprocessor.json", "tokenizer.json", "tokenizer_config.json", "model.onnx"):
        content = run.read(f"variants/pruned-0.5-onnx/{name}")
        (tmp_path / name).write_bytes(content[: len(content) // 2] if name == "model.onnx" else content)
    with pytest.raises(UserError, match=r"the model is damaged: model\.onnx is not a valid graph"):
        Predictor.load(tmp_path)
    (tmp_path / "model.onnx").unlink()
    with pytest.raises(UserError, match=r"it has no model\.onnx"):
        Predictor.load(tmp_path)


def test_images_are_exported_and_quantized(tmp_path: Path, image_set: Path) -> None:
    run = write_run(tmp_path / "run", train_job("image", image_set))
    copytree(Path(run.uri) / "model", Path(run.uri) / "variants" / "earlier")
    found = compress(run, VariantRequest(onnx=True, int8=True))
    assert [each.name for each in found.variants] == ["original", "earlier", "int8", "onnx"], "all that there are"
    original, earlier, int8, onnx = found.variants
    assert (earlier.agreement, earlier.size) == (1.0, original.size)
    assert onnx.agreement == 1.0
    assert int8.agreement > 0.8
    assert int8.size < original.size
    pixels = np.zeros((3, 8, 8), np.uint8)
    own, exported = (Predictor.load(run.uri, variant=name).predict_proba(pixels) for name in (None, "onnx"))
    np.testing.assert_allclose(exported, own, atol=1e-4)
    with pytest.raises(
        UserError, match="is a classifier of images; --prune is for textClassifier: it removes heads and channels of a"
    ):
        compress(run, VariantRequest(prune=0.5))
    clear_results(run)
    assert run.list() == [".lock"]


def test_two_at_once(compressed: Compressed) -> None:
    run, _ = compressed
    with locked(run), pytest.raises(TransientError, match="another process is running it or copying it"):
        compress(run, VariantRequest(onnx=True))
