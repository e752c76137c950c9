"""The progress of a run, on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from trainjob.api.training_status import CheckpointStatus, TrainingPhase, TrainingStatus
from trainjob.cli.live import epoch_line, frame, header, metrics_that_fit
from trainjob.cli.progress import display

METRICS = {"train_loss": 0.5, "validation_loss": 0.25, "validation_accuracy": 0.9, "validation_f1": 0.875}


def checkpoint(step: int) -> CheckpointStatus:
    return CheckpointStatus(uri=f"runs/tags/checkpoints/{step}", step=step, metric="validation_loss", value=0.25)


TRAINING = TrainingStatus(
    stage="Training",
    epoch=1,
    epochs=2,
    step=50,
    steps=200,
    percent=25.0,
    eta=125.0,
    samples_per_second=1234.5,
    loss=0.6931,
    learning_rate=1e-4,
)
FIRST_DONE = TRAINING.model_copy(
    update={
        "step": 100,
        "epochs_completed": 1,
        "metrics": METRICS,
        "is_best": True,
        "latest_checkpoint": checkpoint(100),
        "best_checkpoint": checkpoint(100),
    }
)
SECOND_DONE = FIRST_DONE.model_copy(
    update={"epoch": 2, "step": 200, "epochs_completed": 2, "is_best": False, "latest_checkpoint": checkpoint(200)}
)
RUN = [
    TrainingStatus(),
    TrainingStatus(stage="Training", message="continues from epoch-0001", epochs=2),
    TRAINING.model_copy(update={"message": "continues from epoch-0001"}),
    FIRST_DONE,
    SECOND_DONE,
    SECOND_DONE.model_copy(update={"stage": "Finished"}),
]


def test_what_a_function_prints_is_shown_as_it_is():
    for terminal in (True, False):
        out = io.StringIO()
        console = Console(file=out, force_terminal=terminal, width=20, height=20, _environ={"TERM": "xterm"})
        with display("tags", console) as progress:
            progress.update(TRAINING)
            progress.show("\x1b[31mred\x1b[0m [bold]" + "x" * 30)
        assert "[bold]" + "x" * 30 + "\n" in out.getvalue()
        assert ("\x1b[31m" in out.getvalue()) == terminal


def shown(statuses: list[TrainingStatus], *, terminal: bool, width: int = 100) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, height=20, _environ={"TERM": "xterm"})
    with display("tags", console) as progress:
        for status in statuses:
            progress.update(status)
    return out.getvalue()


def test_plain_lines_for_stages_epochs_and_between() -> None:
    metrics = "train_loss 0.5000  validation_loss 0.2500  validation_accuracy 0.9000  validation_f1 0.8750"
    assert shown(RUN, terminal=False).splitlines() == [
        "tags: preparing",
        "tags: training, continues from epoch-0001",
        "epoch 1/2  step 50/200  25%  0:02:05 to go  loss 0.6931  learning rate 0.0001  1,234 samples/s",
        "tags: training",
        f"epoch 1/2:  {metrics}  (best so far)",
        f"epoch 2/2:  {metrics}",
        "tags: finished",
    ]


def test_plain_lines_are_rare_within_an_epoch() -> None:
    steps = [TRAINING.model_copy(update={"step": step}) for step in range(1, 100)]
    assert len(shown(steps, terminal=False).splitlines()) == 2


def test_a_phase_that_begins_again_is_shown_once() -> None:
    status = TrainingStatus(stage="Preparing")
    first = status.model_copy(update={"phase": TrainingPhase(name="preparing rows", done=4, total=9, unit="rows")})
    assert shown([first, status, first], terminal=False).count("preparing rows") == 1


def test_no_control_characters_when_not_on_a_terminal() -> None:
    assert set(filter(lambda character: not character.isprintable(), shown(RUN, terminal=False))) == {"\n"}


def test_a_function_reports_what_it_likes() -> None:
    report = TrainingStatus(stage="Training", step=3, epoch=3, epochs_completed=3, metrics={"epoch": 3, "bleu": 31.5})
    assert shown([report], terminal=False).splitlines() == ["tags: training", "epoch 3:  bleu 31.50"]
    assert "bleu" in shown([report], terminal=True)


@pytest.mark.parametrize(("epoch", "shown_as"), [(0, "0"), (5, "5"), (12000, "12,000"), (0.52, "0.52")])
def test_a_functions_epoch_is_shown_as_it_is_reported(epoch: float, shown_as: str) -> None:
    report = TrainingStatus(
        stage="Training", step=6, epoch=int(epoch), epochs_completed=6, metrics={"epoch": epoch, "n": 5, "loss": 0.5}
    )
    assert shown([report], terminal=False).splitlines()[-1] == f"epoch {shown_as}:  n 5  loss 0.5000"
    drawn = shown([report], terminal=True)
    assert f"epoch {shown_as}   report 6" in drawn
    assert f"{shown_as:>7}        5   0.5000" in drawn


def test_a_metric_that_is_called_step_is_not_taken_for_the_step() -> None:
    report = TrainingStatus(stage="Training", step=6, epoch=6, epochs_completed=6, metrics={"step": -5, "loss": 0.5})
    assert shown([report], terminal=False).splitlines()[-1] == "epoch 6:  reported_step -5  loss 0.5000"
    assert "reported_step     loss" in shown([report], terminal=True)


def test_of_ten_thousand_metrics_a_line_shows_the_first() -> None:
    metrics = {f"k{number}": float("nan") for number in range(10_000)}
    report = TrainingStatus(stage="Training", step=1, epoch=1, epochs_completed=1, metrics=metrics)
    line = shown([report], terminal=False).splitlines()[-1]
    assert line.startswith("epoch 1:  k0 NaN  k1 NaN  ")
    assert line.endswith("  k19 NaN  and 9,980 more")
    assert "k2" in shown([report], terminal=True)


def test_a_phase_stands_in_the_place_of_the_steps() -> None:
    done = TRAINING.model_copy(update={"step": 200, "percent": 100.0, "eta": 0.0})
    phase = TrainingPhase(name="validation", done=1200, total=40_000, unit="rows")
    validating = done.model_copy(update={"phase": phase, "eta": 130.0})
    facts = ["validation 1,200/40,000 rows", "3%", "0:02:10 to go"]
    assert shown([validating], terminal=False).splitlines() == ["tags: training", "  ".join(facts)]
    drawn = shown([validating], terminal=True)
    assert "   ".join(facts) in drawn
    assert "100%" not in drawn
    megabytes = TrainingStatus(
        phase=TrainingPhase(name="reading", done=12_340_000, total=62_000_000, unit="bytes"), eta=40.0
    )
    read = ["reading 12.3/62.0 MB", "19%", "0:00:40 to go"]
    assert shown([megabytes], terminal=False).splitlines() == ["tags: preparing", "  ".join(read)]
    assert "   ".join(read) in shown([megabytes], terminal=True)
    reading = TrainingStatus(phase=TrainingPhase(name="reading", done=8192, unit="rows"))
    assert shown([reading], terminal=False).splitlines() == ["tags: preparing", "reading 8,192 rows"]
    assert "reading 8,192 rows" in shown([reading], terminal=True)


def test_seconds_are_shown_where_nothing_can_be_counted() -> None:
    waiting = TrainingStatus(stage="Starting", phase=TrainingPhase(name="starting 2 workers", done=75, unit="s"))
    assert shown([waiting], terminal=False).splitlines() == ["tags: starting", "starting 2 workers, 0:01:15"]
    assert "starting 2 workers, 0:01:15" in shown([waiting], terminal=True)
    several = [
        TrainingStatus(phase=TrainingPhase(name=name, done=done))
        for name in ("reading", "tokenizer")
        for done in (5, 6)
    ]
    assert shown(several, terminal=False).splitlines() == ["tags: preparing", "reading 5", "tokenizer 5"]
    slow = TRAINING.model_copy(update={"phase": TrainingPhase(name="since step 50", done=8, unit="s")})
    facts = ["epoch 1/2", "step 50/200", "25%", "0:02:05 to go", "since step 50: 0:00:08"]
    assert shown([slow], terminal=False).splitlines()[1].startswith("  ".join(facts) + "  loss 0.6931")
    assert "   ".join(facts) in shown([slow], terminal=True)


@pytest.mark.parametrize("width", [20, 40, 100])
@pytest.mark.parametrize("status", [TrainingStatus(), TRAINING, TRAINING.model_copy(update={"steps": None})])
def test_a_frame_fits_the_terminal(width: int, status: TrainingStatus) -> None:
    out = io.StringIO()
    Console(file=out, width=width).print(frame("a-rather-long-name", status, 5.0, "*"))
    lines = out.getvalue().splitlines()
    assert len(lines) == (4 if status.step else 1)
    assert max(map(len, lines)) == width
    assert lines[0].startswith("* a-rather")
    assert lines[0].endswith("0:00:05")


def test_the_live_display_leaves_a_line_for_each_epoch() -> None:
    lines = shown(RUN, terminal=True).splitlines()
    assert sum("/2      0.5000   0.2500    0.9000   0.8750" in line for line in lines) == 2


def test_the_live_display_shows_where_the_run_is() -> None:
    out = shown([TRAINING], terminal=True)
    for fact in (
        "tags",
        "training",
        "epoch 1/2",
        "step 50/200",
        "25%",
        "0:02:05 to go",
        "loss 0.6931",
        "1,234 samples/s",
    ):
        assert fact in out


def test_of_a_language_model_tokens_and_padding_are_told() -> None:
    out = shown([TRAINING.model_copy(update={"tokens_per_second": 56789.1, "padding": 0.034})], terminal=False)
    assert "1,234 samples/s  56,789 tokens/s  3% padding" in out


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_cursor_is_back_after_an_error(error: type[BaseException]) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=20, _environ={"TERM": "xterm"})

    def fail() -> None:
        with display("tags", console) as progress:
            progress.update(TRAINING)
            raise error

    with pytest.raises(error):
        fail()
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


def test_the_table_of_epochs() -> None:
    columns = list(METRICS)
    assert [*header(columns), epoch_line(FIRST_DONE, columns)] == [
        "                     validation",
        "  epoch  train_loss     loss  accuracy       f1",
        "    1/2      0.5000   0.2500    0.9000   0.8750  ★ best so far",
    ]


def test_a_narrow_terminal_keeps_the_metric_that_ranks() -> None:
    assert metrics_that_fit(list(METRICS), "validation_f1", 200) == list(METRICS)
    assert metrics_that_fit(list(METRICS), "validation_f1", 50) == ["train_loss", "validation_f1"]
    assert metrics_that_fit(list(METRICS), "validation_f1", 10) == ["validation_f1"]
