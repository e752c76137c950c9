"""The trials of a search, kept in the run's folder, so that another driver can continue the search."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from trainjob.api import Checkpoints, Tuning
from trainjob.api.training_status import BestTrial, TrainingPhase, TrainingStatus, TuningStatus
from trainjob.api.tuning import number_of_trials
from trainjob.errors import UserError, listed
from trainjob.runs.trials import Trial, TrialState, TrialSteps, ranked_trials, read_trials, short_names, write_trial
from trainjob.storage import Folder
from trainjob.tuning.points import point

TRIALS_PERCENT = 95.0
"""Share of the trials in a run's percentage; the rest is the evaluation of the best one."""
_SHOWN_ERRORS = 3


class Board:
    """The state of all trials.

    Trials of an earlier driver start again with the same parameters. One that had ended only repeats its measurements,
    so that the scheduler knows them again.
    """

    def __init__(
        self, run: Folder, tuning: Tuning, checkpoints: Checkpoints, on_change: Callable[[TrainingStatus], None]
    ) -> None:
        self._run, self._tuning, self._checkpoints, self._on_change = run, tuning, checkpoints, on_change
        self.total = number_of_trials(tuning)
        self.trials = {trial.number: trial for trial in read_trials(run)}
        self._begun: dict[int, tuple[float, float]] = {}
        self._steps: dict[int, TrialSteps] = {}
        self.fatal: Exception | None = None
        """The error that ends the whole search, as opposed to one trial."""

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Ray Tune pickles the board to resume from it, but a search resumes from the run's folder."""
        return {}

    def begin_next(self) -> Trial | None:
        """Starts the next trial; None if all have started."""
        number = len(self._begun) + 1
        if number > self.total:
            return None
        trial = self.trials.get(number)
        if trial is None:
            earlier = [self.trials[before] for before in range(1, number)]
            parameters = point(self._tuning, number, earlier, self._checkpoints.lower_is_better)
            trial = Trial(number=number, parameters=parameters)
            self._keep(trial)
        self._begun[number] = (time.monotonic(), trial.seconds)
        self._report()
        return trial

    def measured(self, number: int, epoch: int, value: float) -> None:
        """Records the metric of a trial's epoch."""
        trial = self.trials[number]
        if trial.state != "running" or epoch <= trial.epochs:
            return
        best = value if self._checkpoints.improves(value, trial.value) else trial.value
        self._change(trial, epochs=epoch, value=best)

    def stepped(self, steps: TrialSteps) -> None:
        """Records the steps of a trial."""
        self._steps[steps.number] = steps

    def phase(self) -> TrainingPhase:
        """Progress in steps of all trials: an ended trial counts the steps that it took, a future one the average of
        the others."""
        ended = {number for number, trial in self.trials.items() if trial.state != "running"}
        steps = dict(self._steps)
        if not steps:
            return TrainingPhase(name="trials")
        totals = [each.done if each.number in ended else each.total for each in steps.values()]
        to_come = self.total - len(ended | steps.keys())
        return TrainingPhase(
            name="trials",
            done=sum(each.done for each in steps.values()),
            total=sum(totals) + round(to_come * sum(totals) / len(totals)),
            unit="steps",
        )

    def ended(self, number: int, state: TrialState, error: str = "") -> None:
        """Records the end of a trial; ignored if it had already ended."""
        trial = self.trials[number]
        if trial.state == "running":
            self._change(trial, state=state, error=error)

    def best(self) -> Trial:
        """The best trial. Raises UserError if all have failed."""
        ranked = ranked_trials(list(self.trials.values()), self._checkpoints.lower_is_better)
        if not ranked:
            errors = [f"  trial {trial.number}: {trial.error}" for trial in self.trials.values()]
            more = [f"  and {len(errors) - _SHOWN_ERRORS} more"] if len(errors) > _SHOWN_ERRORS else []
            raise UserError(
                "\n".join([f"all {self.total} trials failed:", *errors[:_SHOWN_ERRORS], *more])
                + "\nFix these errors or narrow spec.tuning.parameters, and start over with --fresh."
            )
        return ranked[0]

    def _change(self, trial: Trial, **changes: Any) -> None:
        since, before = self._begun[trial.number]
        self._keep(trial.model_copy(update={**changes, "seconds": round(before + time.monotonic() - since, 1)}))
        self._report()

    def _keep(self, trial: Trial) -> None:
        self.trials[trial.number] = trial
        write_trial(self._run, trial)

    def _report(self) -> None:
        known = [trial for trial in self.trials.values() if trial.number in self._begun or trial.state != "running"]
        tuning = tuning_status(known, self.total, self._checkpoints.lower_is_better)
        running = [trial.number for trial in known if trial.state == "running"]
        phase = self.phase()
        ended = tuning.done + tuning.stopped + tuning.failed
        share = max(ended / self.total, phase.done / phase.total if phase.total else 0)
        self._on_change(
            TrainingStatus(
                stage="Training",
                message=summary_text(tuning, running, self._checkpoints.metric),
                percent=round(TRIALS_PERCENT * share, 1),
                tuning=tuning,
            )
        )


def tuning_status(trials: list[Trial], total: int, lower_is_better: bool) -> TuningStatus:
    counts = {state: sum(trial.state == state for trial in trials) for state in get_args(TrialState)}
    ranked = ranked_trials(trials, lower_is_better)
    best = None
    if ranked:
        shown = {path: str(value) for path, value in ranked[0].parameters.items()}
        best = BestTrial(number=ranked[0].number, value=ranked[0].value, parameters=shown)
    return TuningStatus(ended=f"{len(trials) - counts['running']}/{total}", total=total, best=best, **counts)


def summary_text(tuning: TuningStatus, running: Sequence[int], metric: str) -> str:
    """The state of the search in words; `running` are the numbers of the trials in training."""
    counts = {"stopped early": tuning.stopped, "failed": tuning.failed}
    known = [f"{tuning.ended} trials ended", *(f"{count} {name}" for name, count in counts.items() if count)]
    if running:
        known.insert(
            0, f"trial{'s' * (len(running) > 1)} {listed([str(number) for number in running])} of {tuning.total}"
        )
    if (best := tuning.best) is not None and best.value is not None:
        known.append(f"best is trial {best.number}: {metric} {best.value:.4f} with {in_words(best.parameters)}")
    return ", ".join(known)


def in_words(parameters: Mapping[str, Any]) -> str:
    """Parameters with the last part of their paths as names, or the whole paths if these are ambiguous."""
    names = short_names(list(parameters))
    return ", ".join(f"{names[path]} {value}" for path, value in parameters.items())
