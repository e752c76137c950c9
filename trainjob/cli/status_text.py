"""The state of a run as words and numbers, for its progress display and for `trainjob describe`."""

import math
from datetime import timedelta

from trainjob.api.training_status import TrainingPhase, TrainingStatus
from trainjob.doing import BYTES
from trainjob.formatting import done, score
from trainjob.progress.phases import SECONDS

MAX_METRICS = 20
"""The most metrics on a line; the others are counted."""


def ends_epoch(status: TrainingStatus, shown: TrainingStatus | None) -> bool:
    """Whether an epoch has ended since the snapshot `shown`."""
    return status.epochs_completed > 0 and (shown is None or status.epochs_completed != shown.epochs_completed)


def begins_phase(status: TrainingStatus, shown: TrainingStatus | None) -> bool:
    """Whether another phase has begun since the snapshot `shown`."""
    phase, before = measured_phase(status), None if shown is None else measured_phase(shown)
    return phase is not None and (before is None or before.name != phase.name)


def first_of(texts: list[str], most: int = MAX_METRICS) -> list[str]:
    """The first texts, `most` of them, and the number of the others."""
    more = [f"and {len(texts) - most:,} more"] if len(texts) > most else []
    return texts[:most] + more


def stage_text(status: TrainingStatus) -> str:
    return f"{status.stage.lower()}, {status.message}" if status.message else status.stage.lower()


def epochs_done(status: TrainingStatus) -> str:
    return _of(status.epochs_completed, status.epochs) if status.epochs else _reported_epoch(status)


def _reported_epoch(status: TrainingStatus) -> str:
    """The epoch of a function, which may report fractions."""
    epoch = status.metrics.get("epoch", status.epoch)
    return f"{epoch:,.6g}" if isinstance(epoch, float) and math.isfinite(epoch) else f"{status.epoch:,}"


def is_placed(status: TrainingStatus) -> bool:
    """Whether the progress of training, or of a phase beside it, is known."""
    return status.phase is not None or _trains(status)


def measured_phase(status: TrainingStatus) -> TrainingPhase | None:
    """The phase to show instead of steps. During training, a phase in seconds is shown beside the steps: None."""
    phase = status.phase
    return None if phase is not None and phase.unit == SECONDS and _trains(status) else phase


def _trains(status: TrainingStatus) -> bool:
    return status.stage == "Training" and status.step > 0


def _phase_position(status: TrainingStatus, phase: TrainingPhase) -> list[str]:
    if phase.unit == SECONDS:
        return [f"{phase.name}, {clock(phase.done)}"]
    facts = [f"{phase.name} {_amount(phase)}"]
    if phase.total:
        facts.append(f"{done(100 * phase.done / phase.total)}%")
    if status.eta is not None:
        facts.append(f"{clock(status.eta)} to go")
    return facts


def position(status: TrainingStatus) -> list[str]:
    """The position of the run: its phase, or epoch and step, and the remaining time, as far as known; a function has
    reports instead of steps."""
    phase = measured_phase(status)
    if phase is not None:
        return _phase_position(status, phase)
    silence = [f"{status.phase.name}: {clock(status.phase.done)}"] if status.phase is not None else []
    if not status.epochs:
        return [f"epoch {_reported_epoch(status)}", f"report {status.step:,}", *silence]
    facts = [f"epoch {_of(status.epoch, status.epochs)}", f"step {_of(status.step, status.steps)}"]
    if status.steps:
        facts.append(f"{done(100 * status.step / status.steps)}%")
    if status.eta is not None:
        facts.append(f"{clock(status.eta)} to go")
    return facts + silence


def speed(status: TrainingStatus) -> list[str]:
    """The speed of training: loss, learning rate, samples and tokens per second and padding, as far as known."""
    facts: list[str] = []
    if measured_phase(status) is not None:
        return facts
    if status.loss is not None:
        facts.append(f"loss {score(status.loss)}")
    if status.learning_rate is not None:
        facts.append(f"learning rate {status.learning_rate:.3g}")
    if status.samples_per_second is not None:
        facts.append(f"{status.samples_per_second:,.0f} samples/s")
    if status.tokens_per_second is not None:
        facts.append(f"{status.tokens_per_second:,.0f} tokens/s")
    if status.padding is not None:
        facts.append(f"{status.padding:.0%} padding")
    return facts


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss, after the days if there are any."""
    days, rest = divmod(round(seconds), 86400)
    before = f"{days:,} day{'s' if days > 1 else ''}, " if days > 0 else ""
    return f"{before}{timedelta(seconds=rest)}"


def _amount(phase: TrainingPhase) -> str:
    if phase.unit == BYTES:
        return f"{phase.done / 1e6:,.1f}" + (f"/{phase.total / 1e6:,.1f} MB" if phase.total else " MB")
    return f"{_of(phase.done, phase.total)} {phase.unit}".rstrip()


def _of(done: int, total: int | None) -> str:
    return f"{done:,}/{total:,}" if total else f"{done:,}"
