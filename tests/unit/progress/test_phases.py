"""Long phases are shown, with their remaining time."""

from collections.abc import Generator
from pathlib import Path

import pytest

from cluster.jobs import eventually
from trainjob.api import Checkpoints
from trainjob.api.training_status import TrainingPhase, TrainingStatus, TuningStatus
from trainjob.doing import DOING
from trainjob.progress import phases, snapshots
from trainjob.progress.channel import Direct
from trainjob.progress.percent import workload
from trainjob.progress.phases import PhaseClock
from trainjob.progress.reporter import Reporter
from trainjob.progress.snapshots import Snapshots
from trainjob.storage import Folder
from trainjob.worker.checkpointing import CheckpointStore


class Everything(Direct):
    """Hands over every snapshot."""

    def send(self, status: TrainingStatus, *, always: bool = False) -> None:
        super().send(status, always=True)


@pytest.fixture
def seen() -> list[TrainingStatus]:
    return []


@pytest.fixture
def reporter(seen: list[TrainingStatus], tmp_path: Path) -> Reporter:
    store = CheckpointStore(Folder(str(tmp_path)), Checkpoints(metric="validation_loss"))
    return Reporter(Everything(seen.append), store, 3)


def test_a_short_phase_is_not_told(reporter: Reporter, seen: list[TrainingStatus]):
    for done in (10, 20):
        reporter.scored("validation", done, 100)
    assert seen == []


def test_the_best_epoch_is_known_before_its_checkpoint_is_saved(reporter: Reporter, seen: list[TrainingStatus]):
    reporter.begin(0, 0, 100, 2, None, [])
    found: list[bool] = []
    for epoch, loss in enumerate([0.5, 0.9, 0.4, 0.4], start=1):
        reporter.validated(epoch, {"validation_loss": loss})
        found.append(seen[-1].is_best)
    assert found == [True, False, True, False]


@pytest.mark.parametrize(("losses", "is_best"), [([0.5, 0.4], True), ([0.4, 0.5], False), ([0.4, 0.4], False)])
def test_a_resumed_run_knows_whether_its_last_epoch_is_the_best(
    reporter: Reporter, seen: list[TrainingStatus], tmp_path: Path, losses: list[float], is_best: bool
):
    store = CheckpointStore(Folder(str(tmp_path)), Checkpoints(metric="validation_loss", keep=2))
    metrics = [{"train_loss": 1 / epoch, "validation_loss": loss} for epoch, loss in enumerate(losses, start=1)]
    names = [
        store.save(epoch, 10 * epoch, each, lambda folder: (folder / "weights").touch())
        for epoch, each in enumerate(metrics, start=1)
    ]
    records = [{"kind": "epoch", "step": 10 * epoch, **each} for epoch, each in enumerate(metrics, start=1)]
    reporter.begin(2, 20, 100, 2, names[-1], records)
    assert (seen[-1].metrics, seen[-1].is_best) == (metrics[-1], is_best)


def test_a_validation_is_told_until_training_goes_on(
    monkeypatch: pytest.MonkeyPatch, reporter: Reporter, seen: list[TrainingStatus]
):
    monkeypatch.setattr(phases, "SILENT_SECONDS", 0.0)
    reporter.plan(workload(rows=100, epochs=1, validation_rows=100, validations=1, final_rows=100), 1)
    reporter.begin(0, 0, 100, 2, None, [])
    reporter.step(1, 50, {})
    reporter.step(1, 100, {})
    assert (seen[-1].percent, seen[-1].eta) == (60, 0), "validation and test are yet to come"
    for done in (10, 20, 120):
        reporter.scored("validation", done, 100)
    assert [status.phase and status.phase.done for status in seen[-3:]] == [10, 20, 100]
    assert [status.percent for status in seen[-3:]] == [62, 64, 80]
    assert seen[-3].eta is None, "nothing is known of the pace yet"
    assert seen[-2].eta is not None
    assert seen[-2].eta > 0
    reporter.validated(1, {"validation_loss": 0.5})
    assert (seen[-1].phase, seen[-1].eta, seen[-1].percent) == (None, 0, 80)
    reporter.evaluating("loading the best checkpoint")
    assert seen[-1].phase == TrainingPhase(name="loading the best checkpoint")
    for done in (50, 100):
        reporter.scored("test", done, 100)
    assert [status.percent for status in seen[-2:]] == [90, 99.9], "100 is for a run that has finished"


def test_the_percentage_does_not_fall_where_two_sets_are_scored_last(
    monkeypatch: pytest.MonkeyPatch, reporter: Reporter, seen: list[TrainingStatus]
):
    monkeypatch.setattr(phases, "SILENT_SECONDS", 0.0)
    reporter.plan(workload(rows=0, epochs=0, validation_rows=0, validations=0, final_rows=400), 0)
    reporter.evaluating("loading the best checkpoint")
    for name, rows in (("test", 100), ("validation", 300)):
        for done in (rows // 2, rows):
            reporter.scored(name, done, rows)
    assert [status.percent for status in seen[-4:]] == [12.5, 25, 62.5, 99.9]


def test_another_phase_has_a_pace_of_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(phases, "SILENT_SECONDS", 0.0)
    clock = PhaseClock()
    clock.observe(TrainingPhase(name="validation", done=0, total=10))
    assert clock.observe(TrainingPhase(name="validation", done=10, total=10)) == (
        TrainingPhase(name="validation", done=10, total=10),
        0,
    )
    half = TrainingPhase(name="test", done=4, total=10)
    assert clock.observe(half) == (half, None)
    assert clock.observe(TrainingPhase(name="test", done=8)) == (TrainingPhase(name="test", done=8), None)


def test_a_wait_before_the_first_row_is_no_part_of_the_pace(monkeypatch: pytest.MonkeyPatch):
    clock, since = PhaseClock(), phases.time.monotonic()
    for seconds, done, eta in ((0, 0, None), (20, 0, None), (22, 10, 18.0)):
        monkeypatch.setattr(phases.time, "monotonic", lambda seconds=seconds: since + seconds)
        told = clock.observe(TrainingPhase(name="reading", done=done, total=100))
        assert (told and told[1]) == (eta and pytest.approx(eta))


def test_of_what_cannot_be_counted_seconds_are(monkeypatch: pytest.MonkeyPatch):
    clock, since = PhaseClock(), phases.time.monotonic()
    monkeypatch.setattr(phases.time, "monotonic", lambda: since)
    assert clock.observe(TrainingPhase(name="starting Ray")) is None
    monkeypatch.setattr(phases.time, "monotonic", lambda: since + 5)
    assert clock.observe(TrainingPhase(name="starting Ray")) == (
        TrainingPhase(name="starting Ray", done=5, unit="s"),
        None,
    )


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch, seen: list[TrainingStatus]) -> Generator[Snapshots]:
    """Snapshots that tell all they know, and often."""
    monkeypatch.setattr(phases, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(snapshots, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(snapshots, "WATCH_INTERVAL_SECONDS", 0.01)
    told = Snapshots(seen.append, workers=2)
    yield told
    told.close()


def test_the_driver_tells_what_it_does_until_the_workers_start(watching: Snapshots, seen: list[TrainingStatus]):
    DOING.begin("reading", 9000, "bytes")
    watching.preparing(0.0)
    DOING.add(4000)
    reading = TrainingPhase(name="reading", done=4000, total=9000, unit="bytes")
    eventually(lambda: seen[-1].phase == reading, 60)
    DOING.add(2000)
    eventually(lambda: seen[-1].eta is not None and seen[-1].eta > 0, 60)
    assert seen[-1].stage == "Preparing"
    DOING.begin("preparing rows", 10, "rows")
    watching.starting()
    eventually(lambda: seen[-1].phase == TrainingPhase(name="preparing rows", done=0, total=10, unit="rows"), 60)
    DOING.reach(10)
    eventually(lambda: phase_name(seen[-1]) == "starting 2 workers", 60)
    assert seen[-1].stage == "Starting"
    watching.add(TrainingStatus(stage="Starting", phase=TrainingPhase(name="loading the model")))
    eventually(lambda: phase_name(seen[-1]) == "loading the model", 60)


def test_how_long_workers_are_silent_is_told(watching: Snapshots, seen: list[TrainingStatus]):
    watching.preparing(0.0)
    watching.add(TrainingStatus(stage="Training", steps=10))
    eventually(lambda: phase_name(seen[-1]) == "first step", 60)
    watching.add(TrainingStatus(stage="Training", step=3, steps=10, eta=70.0))
    assert seen[-1].phase is None or phase_name(seen[-1]) == "since step 3"
    eventually(lambda: phase_name(seen[-1]) == "since step 3", 60)
    assert seen[-1].eta == 70.0, "as training said"
    watching.add(TrainingStatus(stage="Training", step=4, epoch=4))
    eventually(lambda: phase_name(seen[-1]) == "since report 4", 60)
    watching.add(TrainingStatus(stage="Evaluating", step=10, steps=10, phase=TrainingPhase(name="saving the model")))
    eventually(lambda: phase_name(seen[-1]) == "saving the model", 60)
    DOING.begin("writing the report")
    watching.finishing()
    eventually(lambda: phase_name(seen[-1]) == "writing the report", 60)
    watching.end(stage="Finished", phase=None)
    assert (seen[-1].stage, seen[-1].phase) == ("Finished", None)


def test_a_search_is_told_in_steps_of_its_trials(watching: Snapshots, seen: list[TrainingStatus]):
    trials = TrainingPhase(name="trials", done=30, total=240, unit="steps")
    watching.preparing(0.0)
    watching.search(lambda: trials)
    watching.add(TrainingStatus(stage="Training", message="trial 1 of 8", percent=95, tuning=TuningStatus(total=8)))
    eventually(lambda: seen[-1].phase == trials, 60)
    watching.add(TrainingStatus(stage="Evaluating", percent=3, step=9, steps=9))
    assert seen[-1].percent == 95, "the best trial's scores do not begin anew"
    assert seen[-1].tuning == TuningStatus(total=8)


def phase_name(status: TrainingStatus) -> str:
    return status.phase.name if status.phase is not None else ""
