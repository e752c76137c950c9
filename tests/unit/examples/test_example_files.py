"""The example TrainJobs and the scripts that write their data, run as a newcomer runs them."""

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from preprocessors import labels_of
from trainjob.api.load import load_trainjob
from trainjob.data import fit, prepare_examples

EXAMPLES = Path(__file__).parents[3] / "examples"
MANIFESTS = EXAMPLES.parent / "manifests" / "examples"
TRAINJOBS = sorted(EXAMPLES.rglob("*.yaml"))


def start(script: str, output: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, EXAMPLES / script, "--output", output], stdout=subprocess.DEVNULL)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("path", TRAINJOBS, ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_trainjob_is_valid_and_reads_and_writes_inside_the_repository(path: Path) -> None:
    spec = load_trainjob(path).spec
    assert spec.dataset is not None
    assert spec.storage is not None
    assert Path(str(spec.dataset.train.uri)).is_relative_to(EXAMPLES / "data")
    assert spec.storage.uri is not None
    assert Path(spec.storage.uri) == EXAMPLES.parent / "runs"


@pytest.mark.parametrize("script", ["make_docstrings", "make_summaries"])
def test_rows_are_the_same_each_time(script: str) -> None:
    program = f"import random, {script}; print({script}.collect(['yaml', 'jinja2'], random.Random(0)))"
    command = [sys.executable, "-c", program]
    first, second = (subprocess.check_output(command, cwd=EXAMPLES, timeout=120) for _ in range(2))
    assert len(first) > 10_000
    assert first == second


@pytest.mark.slow
def test_digits_are_stratified(tmp_path: Path) -> None:
    assert start("make_digits.py", tmp_path).wait() == 0
    uris = [f"spec.dataset.{part}.uri={tmp_path}/{part}-images-idx3-ubyte.gz" for part in ("train", "test")]
    spec = load_trainjob(EXAMPLES / "digits-cnn.yaml", uris).spec
    fitted = fit(spec)
    assert fitted.preprocessor.target.classes == list("0123456789")
    counts = Counter(labels_of(prepare_examples(spec, fitted)["test"]).tolist())
    assert sum(counts.values()) == 360
    assert all(35 <= count <= 37 for count in counts.values())


@pytest.mark.slow
def test_function_finds_its_module_and_its_columns(tmp_path: Path) -> None:
    from trainjob.worker.user_function import find_function

    path = EXAMPLES / "function" / "trainjob.yaml"
    function = load_trainjob(path).spec.model.function
    assert function is not None
    module = sys.modules[find_function(function, path.parent).__module__]
    assert start("function/make_diabetes.py", tmp_path / "diabetes.csv").wait() == 0
    rows = read(tmp_path / "diabetes.csv")
    assert len(rows) == 442
    assert len(rows[0]) == 11
    assert module.TARGET in rows[0]


@pytest.mark.parametrize("path", sorted(MANIFESTS.glob("*.yaml")), ids=lambda path: path.name)
def test_a_clusters_manifest_is_valid_on_a_laptop_too(path: Path) -> None:
    assert load_trainjob(path).spec.storage is not None
