"""Refusals of `trainjob compress`, and the state after a kill."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from compress_runs import train_job, write_run
from trainjob import Predictor
from trainjob.api import TrainJob
from trainjob.cli.app import app
from trainjob.compress import variants as making
from trainjob.compress.variants import VariantRequest, compress
from trainjob.errors import StorageError, UserError
from trainjob.runs.model import variants_of, write_variant
from trainjob.storage import Folder


def test_a_kill_in_the_midst_leaves_no_half_variant(
    tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kill may come at any file, of a new variant or of an existing one."""
    run = write_run(tmp_path / "run", train_job("text", texts))
    upload, left = Folder.upload, [0]

    def dying(folder: Folder, local: Path, name: str) -> None:
        if left[0] == 0:
            raise StorageError("killed")
        left[0] -= 1
        upload(folder, local, name)

    whole = Path(run.uri) / "model"
    monkeypatch.setattr(Folder, "upload", dying)
    for files in range(4):
        for _ in range(2):
            left[0] = files
            with pytest.raises(StorageError):
                write_variant(whole, run, "int8")
            assert variants_of(run) == []
            with pytest.raises(UserError, match=r"is not a run's folder|has no variants"):
                Predictor.load(f"{run.uri}/variants/int8")
        left[0] = 100
        write_variant(whole, run, "int8")
        assert variants_of(run) == ["int8"]
        Predictor.load(run.uri, variant="int8")


def test_runs_without_a_model(tmp_path: Path, texts: Path) -> None:
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "run"}}
    function = TrainJob.model_validate(document | {"spec": {"model": {"function": {"name": "loop:train"}}}})
    with pytest.raises(UserError, match="has no trainjob model: a function trained it and saved its own files"):
        compress(write_run(tmp_path / "function", function), VariantRequest(int8=True))
    run = write_run(tmp_path / "run", train_job("text", texts))
    run.delete("summary.json")
    run.delete("model")
    with pytest.raises(UserError, match="this run has not finished"):
        compress(run, VariantRequest(int8=True))
    with pytest.raises(UserError, match="is not a run's folder"):
        compress(Folder(str(tmp_path / "nothing")), VariantRequest(int8=True))


def test_missing_packages_are_told_before_anything_is_made(
    tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run", train_job("text", texts))
    monkeypatch.setattr(making, "find_spec", lambda name: None if name == "onnxscript" else name)
    with pytest.raises(UserError, match=r"--onnx and --int8 need onnxscript: pip install 'trainjob\[compress\]'"):
        compress(run, VariantRequest(prune=0.9, int8=True))
    assert variants_of(run) == []


@pytest.mark.parametrize("share", ["0", "1", "nan", "-0.5", "2"])
def test_odd_shares(tmp_path: Path, share: str) -> None:
    result = CliRunner().invoke(app, ["compress", str(tmp_path), "--prune", share])
    assert "the share must be greater than 0 and less than 1" in str(result.exception)


def test_something_must_be_asked_for(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["compress", str(tmp_path)])
    assert str(result.exception) == "give at least one of --int8, --prune SHARE and --onnx"
