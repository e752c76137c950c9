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
def test_a_compiled_language_model_learns_what_another_does(
    new_run: Callable[..., Run], text_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "compiled"))
    decoder = {"layers": 1, "hiddenSize": 32, "heads": 2, "vocabularySize": 300}
    changes = {
        "model": {"causalLM": {"decoder": decoder, "maxLength": 32}},
        "dataset": {"train": {"uri": str(text_set / "train.csv")}, "text": ["title", "body"], "loader": "dataLoader"},
        "training.epochs": 2,
        "workers.count": 1,
    }
    losses = dict[str, list[float]]()
    for name, compiled in (("plain", False), ("compiled", True)):
        run = new_run("text", changes | {"training.compile": compiled}, name)
        run.finish()
        losses[name] = [record["validation_loss"] for record in run.records("epoch")]
    assert list((tmp_path / "compiled").rglob("*.so"))
    assert losses["compiled"] == pytest.approx(losses["plain"], rel=1e-3)
    assert losses["plain"][1] < losses["plain"][0]


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
