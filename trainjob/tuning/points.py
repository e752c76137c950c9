"""Chooses the parameters of a trial from the search's seed, the trial's number and the earlier trials."""

import random
from collections.abc import Sequence
from itertools import islice, product
from math import exp, log
from typing import Any

from trainjob.api import Tuning
from trainjob.api.tuning import Parameter, Value, values_of
from trainjob.runs.trials import Trial, optuna_distributions, optuna_study

Point = dict[str, Value]
"""Parameter values by the path of their field in the spec."""

DIGITS = 6
"""Significant digits of drawn numbers, so that the value shown is the value used."""


def point(tuning: Tuning, number: int, earlier: Sequence[Trial], lower_is_better: bool) -> Point:
    """The parameters of trial `number`, from 1, after the `earlier` ones, some of which may still run."""
    match tuning.search:
        case "grid":
            values = product(*(values_of(parameter) for parameter in tuning.tuned.values()))
            return dict(zip(tuning.tuned, next(islice(values, number - 1, None)), strict=True))
        case "random":
            return {
                path: _drawn(parameter, f"{tuning.seed}/{number}/{path}") for path, parameter in tuning.tuned.items()
            }
        case "tpe":
            return _suggested(tuning, number, earlier, lower_is_better)


def _drawn(parameter: Parameter, seed: str) -> Value:
    chance, values = random.Random(seed), values_of(parameter)
    match parameter.chosen:
        case "uniform":
            return _rounded(chance.uniform(*values), *values)
        case "log_uniform":
            return _rounded(exp(chance.uniform(*map(log, values))), *values)
        case "range":
            return chance.randint(*values)
        case _:
            return chance.choice(values)


def _rounded(number: float, low: float, high: float) -> float:
    return min(max(float(f"{number:.{DIGITS}g}"), low), high)


def _suggested(tuning: Tuning, number: int, earlier: Sequence[Trial], lower_is_better: bool) -> Point:
    """The suggestion of Optuna's tree-structured Parzen estimator."""
    from optuna.samplers import TPESampler

    sampler = TPESampler(seed=(tuning.seed + number) % 2**32, constant_liar=True)
    study = optuna_study(tuning, earlier, lower_is_better, sampler)
    asked = study.ask(optuna_distributions(tuning)).params
    return {path: _in_bounds(parameter, asked[path]) for path, parameter in tuning.tuned.items()}


def _in_bounds(parameter: Parameter, value: Any) -> Value:
    return _rounded(value, *values_of(parameter)) if parameter.chosen in ("uniform", "log_uniform") else value
