"""The trials of `spec.tuning`: each is a run's folder, such as `trials/0003/`, with an additional `trial.json`."""

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

TrialState = Literal["running", "done", "stopped", "failed"]


class Trial(StrictModel):
    """The state of one trial."""

    number: int
    """The trial's number, from 1."""
    parameters: dict[str, Any]
    """Maps the path of each tuned field to the value of this trial."""
    state: TrialState = "running"
    """stopped: by the scheduler; failed: diverged, ran out of memory or failed otherwise."""
    value: float | None = None
    """The best value of the checkpoints' metric; None before the first epoch ends."""
    epochs: int = 0
    """Epochs completed."""
    seconds: float = 0.0
    """Wall time, over all attempts."""
    error: str = ""
    """The cause of the failure."""


class TrialSteps(NamedTuple):
    """The progress of a trial."""

    number: int
    done: int
    """Steps taken."""
    total: int


def trial_folder(run: Folder, number: int) -> Folder:
    return run / TRIALS / f"{number:04d}"


def read_trials(run: Folder) -> list[Trial]:
    """The trials that have started, in order. Raises UserError for a damaged file."""
    trials: list[Trial] = []
    for name in run.list(TRIALS):
        folder = run / TRIALS / name
        if folder.exists(TRIAL):
            with refuse_damaged(folder, TRIAL):
                trials.append(Trial.model_validate_json(folder.read(TRIAL)))
    return trials


def read_trial_records(run: Folder, trials: Sequence[Trial]) -> dict[int, list[dict[str, Any]]]:
    """Maps the number of each trial to its records in `metrics.jsonl`. Raises UserError for a damaged file."""
    records: dict[int, list[dict[str, Any]]] = {}
    for trial in trials:
        folder = trial_folder(run, trial.number)
        with refuse_damaged(folder, METRICS):
            records[trial.number] = read_history(folder)
    return records


def write_trial(run: Folder, trial: Trial) -> None:
    trial_folder(run, trial.number).write(TRIAL, trial.model_dump_json(by_alias=True, indent=1).encode())


def ranked_trials(trials: list[Trial], lower_is_better: bool) -> list[Trial]:
    """Trials that have a value and did not fail, best first; ties in order of number."""
    found = [(trial.value, trial) for trial in trials if trial.value is not None and trial.state != "failed"]
    sign = 1 if lower_is_better else -1
    return [trial for _, trial in sorted(found, key=lambda pair: (sign * pair[0], pair[1].number))]


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """A short name for each path: its last component, or the whole path if the last components are not unique."""
    last = [path.rpartition(".")[2] for path in paths]
    return dict(zip(paths, last if len(set(last)) == len(last) else paths, strict=True))


def optuna_study(
    tuning: Tuning, trials: Sequence[Trial], lower_is_better: bool, sampler: "BaseSampler | None" = None
) -> "Study":
    """An Optuna study of the trials, finished and running."""
    import optuna
    from optuna.trial import TrialState, create_trial

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler, direction="minimize" if lower_is_better else "maximize")
    space = optuna_distributions(tuning)
    for trial in trials:
        if trial.state == "running":
            state = TrialState.RUNNING
        else:
            state = TrialState.FAIL if trial.state == "failed" or trial.value is None else TrialState.COMPLETE
        value = trial.value if state == TrialState.COMPLETE else None
        study.add_trial(create_trial(state=state, params=trial.parameters, distributions=space, value=value))
    return study


def optuna_distributions(tuning: Tuning) -> "dict[str, BaseDistribution]":
    """The Optuna distribution of each tuned parameter."""
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
