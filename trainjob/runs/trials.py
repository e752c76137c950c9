"""`trials/0003/`: a trial of `spec.tuning` is a run's folder with its own checkpoints, and `trial.json` besides."""

from typing import Any, Literal

from trainjob.api.base import StrictModel
from trainjob.errors import UserError
from trainjob.runs.files import TRIAL, TRIALS
from trainjob.storage import Folder

State = Literal["running", "done", "stopped", "failed"]


class Trial(StrictModel):
    """How one trial goes."""

    number: int
    """From 1."""
    parameters: dict[str, Any]
    """What was tuned, by the path of the field in the spec."""
    state: State = "running"
    """stopped: by the scheduler; failed: it diverged, ran out of memory or failed otherwise."""
    value: float | None = None
    """The checkpoints' metric at its best; none before the first epoch."""
    epochs: int = 0
    """Epochs completed."""
    seconds: float = 0.0
    """Wall time, over all attempts."""
    error: str = ""
    """Why it failed."""


def trial_folder(run: Folder, number: int) -> Folder:
    return run / TRIALS / f"{number:04d}"


def read_trials(run: Folder) -> list[Trial]:
    """The trials that have been started, in order. Raises UserError for a file that is none of a trial's."""
    trials: list[Trial] = []
    for name in run.list(TRIALS):
        folder = run / TRIALS / name
        if folder.exists(TRIAL):
            try:
                trials.append(Trial.model_validate_json(folder.read(TRIAL)))
            except ValueError as error:
                raise UserError(f"{folder.uri}/{TRIAL} is damaged or of another version of trainjob: {error}") from None
    return trials


def write_trial(run: Folder, trial: Trial) -> None:
    trial_folder(run, trial.number).write(TRIAL, trial.model_dump_json(by_alias=True, indent=1).encode())


def ranked_trials(trials: list[Trial], lower_is_better: bool) -> list[Trial]:
    """Those that have a value, best first; of equals the earlier. A failed trial counts as bad, whatever it had
    reached."""
    found = [(trial.value, trial) for trial in trials if trial.value is not None and trial.state != "failed"]
    sign = 1 if lower_is_better else -1
    return [trial for _, trial in sorted(found, key=lambda pair: (sign * pair[0], pair[1].number))]
