"""`trials/0003/`: a trial of `spec.tuning` is a run's folder with its own checkpoints, and `trial.json` besides."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from trainjob.api import Tuning
from trainjob.api.tuning import Parameter, values_of
from trainjob.runs.files import METRICS, TRIAL, TRIALS
from trainjob.runs.history import read_history
from trainjob.runs.refusals import refuse_damaged
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

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


class TrialSteps(NamedTuple):
    """How far a trial has come."""

    number: int
    done: int
    """Steps taken."""
    total: int


def trial_folder(run: Folder, number: int) -> Folder:
    return run / TRIALS / f"{number:04d}"


def read_trials(run: Folder) -> list[Trial]:
    """The trials that have been started, in order. Raises UserError for a file that is none of a trial's."""
    trials: list[Trial] = []
    for name in run.list(TRIALS):
        folder = run / TRIALS / name
        if folder.exists(TRIAL):
            with refuse_damaged(folder, TRIAL):
                trials.append(Trial.model_validate_json(folder.read(TRIAL)))
    return trials


def read_trial_records(run: Folder, trials: Sequence[Trial]) -> dict[int, list[dict[str, Any]]]:
    """What each trial has measured, by its number: the lines of its `metrics.jsonl`. Raises UserError for a file that
    is none."""
    records: dict[int, list[dict[str, Any]]] = {}
    for trial in trials:
        folder = trial_folder(run, trial.number)
        with refuse_damaged(folder, METRICS):
            records[trial.number] = read_history(folder)
    return records


def write_trial(run: Folder, trial: Trial) -> None:
    trial_folder(run, trial.number).write(TRIAL, trial.model_dump_json(by_alias=True, indent=1).encode())


def ranked_trials(trials: list[Trial], lower_is_better: bool) -> list[Trial]:
    """Those that have a value, best first; of equals the earlier. A failed trial counts as bad, whatever it had
    reached."""
    found = [(trial.value, trial) for trial in trials if trial.value is not None and trial.state != "failed"]
    sign = 1 if lower_is_better else -1
    return [trial for _, trial in sorted(found, key=lambda pair: (sign * pair[0], pair[1].number))]


def names_of(paths: Sequence[str]) -> dict[str, str]:
    """A name for each path: its last part, or all of it where that would not tell them apart."""
    last = [path.rpartition(".")[2] for path in paths]
    return dict(zip(paths, last if len(set(last)) == len(last) else paths, strict=True))


def study_of(
    tuning: Tuning, trials: Sequence[Trial], lower_is_better: bool, sampler: "BaseSampler | None" = None
) -> "Study":
    """The trials as Optuna knows them, some of which may be under way."""
    import optuna
    from optuna.trial import TrialState, create_trial

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler, direction="minimize" if lower_is_better else "maximize")
    space = distributions_of(tuning)
    for trial in trials:
        if trial.state == "running":
            state = TrialState.RUNNING
        else:
            state = TrialState.FAIL if trial.state == "failed" or trial.value is None else TrialState.COMPLETE
        value = trial.value if state == TrialState.COMPLETE else None
        study.add_trial(create_trial(state=state, params=trial.parameters, distributions=space, value=value))
    return study


def distributions_of(tuning: Tuning) -> "dict[str, BaseDistribution]":
    """What Optuna draws each parameter from."""
    return {path: _distribution(parameter) for path, parameter in tuning.tuned.items()}


def _distribution(parameter: Parameter) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    values = values_of(parameter)
    match parameter.chosen:
        case "uniform" | "log_uniform":
            return FloatDistribution(values[0], values[1], log=parameter.chosen == "log_uniform")
        case "range":
            return IntDistribution(*values)
        case _:
            return CategoricalDistribution(values)
