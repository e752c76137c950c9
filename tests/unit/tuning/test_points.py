"""The parameters of trials."""

from typing import Any

import pytest

from trainjob.api import Tuning
from trainjob.api.tuning import number_of_trials
from trainjob.runs.trials import Trial
from trainjob.tuning.points import point

RATE, BATCH, EPOCHS = "training.optimizer.adamW.learningRate", "training.batchSize", "training.epochs"


def tuning(parameters: dict[str, Any], **fields: Any) -> Tuning:
    document = {"parameters": parameters, **fields}
    return Tuning.model_validate(document, strict=True, by_alias=True, by_name=False)


def test_a_grid_is_tried_in_order_and_no_further():
    grid = tuning({EPOCHS: {"grid": [1, 2]}, BATCH: {"grid": [8, 16, 32]}}, search="grid", trials=100)
    assert number_of_trials(grid) == 6
    points = [point(grid, number, [], True) for number in range(1, 7)]
    assert {(each[EPOCHS], each[BATCH]) for each in points} == {(e, b) for e in (1, 2) for b in (8, 16, 32)}
    assert number_of_trials(tuning({EPOCHS: {"grid": [0 + 1]}}, search="grid")) == 1


def test_a_random_trial_depends_on_its_number_and_the_seed_alone():
    search = tuning({RATE: {"logUniform": [1e-5, 1e-1]}, BATCH: {"choice": [8]}, EPOCHS: {"range": [1, 3]}})
    points = [point(search, number, [], True) for number in range(1, 101)]
    assert points == [point(search, number, [], True) for number in range(1, 101)]
    assert all(1e-5 <= each[RATE] <= 1e-1 for each in points)  # pyrefly: ignore[unsupported-operation]
    assert {each[EPOCHS] for each in points} == {1, 2, 3}
    assert {each[BATCH] for each in points} == {8}
    assert sum(each[RATE] < 1e-3 for each in points) in range(35, 66)  # pyrefly: ignore[unsupported-operation]
    assert point(search.model_copy(update={"seed": 1}), 1, [], True) != points[0]


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_tpe_learns_from_the_trials_before(lower_is_better: bool):
    """The value is best at 0.3; failed and running trials have none."""
    search = tuning({"model.textClassifier.dropout": {"uniform": [0, 0.9]}}, search="tpe")
    trials = [Trial(number=1, parameters={"model.textClassifier.dropout": 0.8}, state="failed")]
    trials.append(Trial(number=2, parameters={"model.textClassifier.dropout": 0.7}))
    for number in range(3, 43):
        parameters = point(search, number, trials, lower_is_better)
        assert point(search, number, trials, lower_is_better) == parameters
        distance = abs(float(parameters["model.textClassifier.dropout"]) - 0.3)
        value = distance if lower_is_better else -distance
        trials.append(Trial(number=number, parameters=dict(parameters), state="done", value=value))
    late = [abs(trial.value or 0) for trial in trials[-15:]]
    early = [abs(trial.value or 0) for trial in trials[2:12]]
    assert sum(late) / len(late) < sum(early) / len(early) / 2
