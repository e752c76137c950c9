"""Steps that PyTorch compiles."""

from collections.abc import Callable
from pathlib import Path

import pytest
from training_runs import Run


@pytest.mark.nightly
def test_a_compiled_model_learns_as_any_other(
    new_run: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    changes = {"dataset.loader": "dataLoader", "training.epochs": 2, "training.compile": True}
    run = new_run("image", changes)
    run.finish()
    assert list((tmp_path / "compiled").rglob("*.so"))
    first, second = run.records("epoch")
    assert second["validation_loss"] < first["validation_loss"] < run.records("step")[0]["loss"]
    assert run.read("evaluation.json")["test"]["accuracy"] > 0.5


@pytest.mark.nightly
def test_a_machine_without_a_compiler(new_run: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", str(tmp_path / "g++"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    run = new_run("image", {"dataset.loader": "dataLoader", "training.compile": True, "workers.count": 1})
    last = run.snapshots()[-1]
    assert last["failure"]["message"].startswith(
        "spec.training.compile: PyTorch cannot compile this model here (InvalidCxxCompiler: No working C++ compiler"
    )
    assert last["failure"]["retryable"] is False
