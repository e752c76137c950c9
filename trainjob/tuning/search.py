"""Runs the search on Ray Tune, which starts trials as resources become free; its scheduler stops the bad ones."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import Searcher

from trainjob.errors import UserError
from trainjob.runs.trials import Trial
from trainjob.scratch import scratch_folder
from trainjob.tuning.board import Board

Measured = Callable[[int, float], None]
"""Called with the number of each completed epoch of a trial and the checkpoints' metric."""

DRIVER = {"CPU": 0, "node:__internal_head__": 0.001}
"""Resources of a process that only starts workers."""

REDUCTION = 3
"""ASHA continues about one trial in this many beyond epochs 1, 3, 9 and so on."""

_ENVIRONMENT = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",  # a trial's last report has no metric
    "RAY_AIR_NEW_OUTPUT": "0",  # the new one prints in any case
}


class TrialFailed(Exception):
    """A trial ended without a usable model; the search continues."""


def search(
    board: Board,
    train: Callable[[Trial, Measured], None],
    *,
    resources: dict[str, float],
    reuse: bool,
    retries: int,
    parallel: int,
    epochs: int,
    asha: bool,
    lower_is_better: bool,
) -> None:
    """Calls `train` for every trial, up to `parallel` at once, each in a process with `resources` that later trials
    share if `reuse`.

    `train` raises TrialFailed for a failed trial; a UserError ends the search and is raised here. If the process dies,
    it is called again, up to `retries` times. `epochs` is the maximum of a trial.
    """
    os.environ.update(_ENVIRONMENT)
    with scratch_folder() as scratch:
        tune.Tuner(
            tune.with_resources(partial(_run_trial, train=train), resources),
            tune_config=tune.TuneConfig(
                metric="value",
                mode="min" if lower_is_better else "max",
                search_alg=_Search(board),
                scheduler=_asha(epochs) if asha else None,
                num_samples=board.total,
                max_concurrent_trials=parallel,
                reuse_actors=reuse,
            ),
            run_config=tune.RunConfig(
                name="search",
                storage_path=str(scratch),
                failure_config=tune.FailureConfig(max_failures=retries),
                stop=_Stop(board),
                verbose=0,
            ),
        ).fit()
    if board.fatal is not None:
        raise board.fatal


def _asha(epochs: int) -> ASHAScheduler:
    """ASHA with a limit that is never reached: trials end by themselves."""
    return ASHAScheduler(time_attr="epoch", max_t=epochs + 1, grace_period=1, reduction_factor=REDUCTION)


def _run_trial(config: dict[str, Any], train: Callable[[Trial, Measured], None]) -> None:
    try:
        train(Trial.model_validate(config["trial"]), lambda epoch, value: tune.report({"epoch": epoch, "value": value}))
    except TrialFailed as error:
        tune.report({"failed": str(error)})
    except UserError as error:
        tune.report({"fatal": error})
    except Exception as error:
        tune.report({"failed": f"{type(error).__name__}: {error}"})
    else:
        tune.report({"done_by_itself": True})


class _Search(Searcher):
    """Gives Ray Tune the board's trials, and the board their results."""

    def __init__(self, board: Board) -> None:
        super().__init__(metric="value", mode="max")
        self._board = board
        self._numbers: dict[str, int] = {}

    def suggest(self, trial_id: str) -> Any:
        trial = self._board.begin_next()
        if trial is None:
            return Searcher.FINISHED
        self._numbers[trial_id] = trial.number
        return {"trial": trial.model_dump()}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        number = self._numbers[trial_id]
        if "fatal" in result:
            self._board.fatal = result["fatal"]
        elif "failed" in result:
            self._board.ended(number, "failed", result["failed"])
        elif "done_by_itself" in result:
            self._board.ended(number, "done")
        elif "epoch" in result:
            self._board.measured(number, result["epoch"], result["value"])

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        if result is not None:
            self.on_trial_result(trial_id, result)
        if error:
            self._board.ended(self._numbers[trial_id], "failed", "the process that trained it ended unexpectedly")
        elif self._board.fatal is None:
            self._board.ended(self._numbers[trial_id], "stopped")

    def save(self, checkpoint_path: str) -> None:
        """Nothing to do: the board is kept in the run's folder."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing to do: the board is kept in the run's folder."""


class _Stop(tune.Stopper):
    """Ends the search after a fatal error."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return self._board.fatal is not None
