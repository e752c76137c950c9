"""Phases that take long are told, with the time that they have to go."""

from pathlib import Path

import pytest

from cluster.jobs import eventually
from trainjob.api import Checkpoints
from trainjob.api.training_status import Phase, TrainingStatus
from trainjob.progress import phases
from trainjob.progress.channel import Direct
from trainjob.progress.phases import PhaseClock
from trainjob.progress.reporter import Reporter
from trainjob.progress.snapshots import Snapshots
from trainjob.runs.checkpoints import CheckpointStore
from trainjob.storage import Folder
from trainjob.training.distributed import AllRanks


class Everything(Direct):
    """Hands over every snapshot."""

    def send(self, status: TrainingStatus, *, always: bool = False) -> None:
        super().send(status, always=True)


@pytest.fixture
def seen() -> list[TrainingStatus]:
    return []


@pytest.fixture
def reporter(seen: list[TrainingStatus], tmp_path: Path) -> Reporter:
    store = CheckpointStore(Folder(str(tmp_path)), Checkpoints(), AllRanks())
    return Reporter(Everything(seen.append), store, "validation_loss", 3)


def test_a_short_phase_is_not_told(reporter: Reporter, seen: list[TrainingStatus]):
    for done in (10, 20):
        reporter.scored("validation", done, 100)
    Snapshots(seen.append).counts(Phase(name="baselines", done=0, total=2))
    assert seen == []


def test_a_validation_is_told_until_training_goes_on(
    monkeypatch: pytest.MonkeyPatch, reporter: Reporter, seen: list[TrainingStatus]
):
    monkeypatch.setattr(phases, "SECONDS_UNTOLD", 0.0)
    reporter.begin(0, 0, 100, 2, None, {})
    reporter.step(1, 50, {})
    reporter.step(1, 100, {})
    assert (seen[-1].percent, seen[-1].eta) == (100, 0)
    for done in (10, 20, 120):
        reporter.scored("validation", done, 100)
    assert [status.phase and status.phase.done for status in seen[-3:]] == [10, 20, 100]
    assert seen[-3].eta is None, "nothing is known of the pace yet"
    assert seen[-2].eta is not None
    assert seen[-2].eta > 0
    reporter.validated(1, {"validation_loss": 0.5})
    assert (seen[-1].phase, seen[-1].eta) == (None, 0)


def test_another_phase_has_a_pace_of_its_own():
    clock = PhaseClock()
    clock.is_long(Phase(name="validation", done=0, total=10))
    assert clock.eta(Phase(name="validation", done=10, total=10)) == 0
    clock.is_long(Phase(name="test", done=4, total=10))
    assert clock.eta(Phase(name="test", done=4, total=10)) is None
    assert clock.eta(Phase(name="test", done=8)) is None


def test_the_drivers_phases_end_with_the_next_snapshot(monkeypatch: pytest.MonkeyPatch, seen: list[TrainingStatus]):
    monkeypatch.setattr(phases, "SECONDS_UNTOLD", 0.0)
    snapshots = Snapshots(seen.append)
    reading = Phase(name="reading", done=4096, unit="rows")
    snapshots.preparing(0.0, lambda: reading)
    eventually(lambda: seen[-1].phase == reading, 60)
    assert seen[-1].stage == "Preparing"
    snapshots.starting()
    assert (seen[-1].stage, seen[-1].phase) == ("Starting", None)
