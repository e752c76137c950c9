"""On Ray, too, the same command continues an interrupted run to the weights of an uninterrupted one."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from training_runs import BEYOND_MEMORY, SLOW, STREAMED, Run, interrupt_all, kill_worker, terminate_driver, write_run

LONG = {"training.epochs": 4}
"""Training must outlast Ray's shutdown, which takes a while on a busy machine."""


@pytest.fixture
def streamed(tmp_path_factory: pytest.TempPathFactory, text_set: Path, warm_ray: int) -> Run:
    """A finished run whose rows Ray Data streamed in every epoch: they come in an order of their own."""
    run = write_run(tmp_path_factory.mktemp("streamed"), "text", text_set, LONG, "streamed")
    run.first = STREAMED
    run.finish()
    return run


@pytest.mark.nightly
def test_a_ray_cluster_of_its_own(new_run: Callable[..., Run], streamed: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RAY_ADDRESS")
    monkeypatch.delenv("RAY_AUTH_MODE")
    run = new_run("text", {"retries": 1} | LONG | SLOW)
    run.first = f"{STREAMED}; {BEYOND_MEMORY}"

    for end, code in ((interrupt_all, 130), (terminate_driver, 143)):
        assert run.end_at_checkpoint(end) == code, run.output
        assert "stopped. The same command continues from " in run.output
        assert "Traceback (most recent call last)" not in run.output
        assert "stack" not in run.output, run.output

    assert run.end_at_checkpoint(kill_worker) == 0, run.output
    assert "training, continues from epoch-0" in run.output, run.output
    assert re.search(r"worker [01] failed: WorkerDied: .*; starting again", run.output), run.output
    assert "Traceback (most recent call last)" not in run.output
    assert "(raylet)" not in run.output
    assert run.read("summary.json")["attempts"] == 3
    run.assert_same_end(streamed)
    assert "  loader: rayData\n" in (run.folder / "trainjob.yaml").read_text()
