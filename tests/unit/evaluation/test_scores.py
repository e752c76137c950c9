import json
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from trainjob.errors import Diverged
from trainjob.evaluation import (
    ClassificationScores,
    Confusion,
    Scores,
    classification_scores,
    language_scores,
)
from trainjob.evaluation.scores.base import SECTIONS, scores_types
from trainjob.kinds import KINDS
from trainjob.kinds.facts import Facts


def raw_predictions(name: str) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    if name == "random":
        return random.integers(0, 4, 500), random.integers(0, 4, 500)
    if name == "never-predicted":
        return random.integers(0, 4, 500), random.integers(0, 3, 500)
    if name == "never-there":
        return random.integers(1, 4, 500), random.integers(0, 4, 500)
    if name == "single-rows":
        return np.arange(4), np.array([0, 1, 2, 2])
    if name == "neither":
        return random.integers(0, 3, 500), random.integers(0, 3, 500)
    return np.arange(400) % 4, np.arange(400) % 4


@pytest.mark.parametrize("name", ["random", "never-predicted", "never-there", "neither", "single-rows", "perfect"])
def test_scores_equal_scikit_learns_on_the_raw_predictions(name: str) -> None:
    true, predicted = raw_predictions(name)
    labels = range(4)
    confusion = confusion_matrix(true, predicted, labels=labels)
    found = classification_scores(Confusion.of_matrix(confusion), loss_sum=250.0, classes=["a", "b", "c", "d"])

    def expected(average: str | None) -> Any:
        options: dict[str, Any] = {"average": average, "zero_division": 0}
        return precision_recall_fscore_support(true, predicted, labels=labels, **options)

    assert found.rows == len(true)
    assert found.loss == 250.0 / len(true)
    assert found.accuracy == pytest.approx(accuracy_score(true, predicted))
    for average in ("macro", "weighted"):
        line = getattr(found, average)
        assert (line.precision, line.recall, line.f1) == pytest.approx(expected(average)[:3])
    for index, line in enumerate(found.per_class):
        assert line.name == "abcd"[index]
        assert (line.precision, line.recall, line.f1, line.rows) == pytest.approx(
            [row[index] for row in expected(None)]
        )
    matrix = np.zeros((4, 4), np.int64)
    matrix[found.confusion.true, found.confusion.predicted] = found.confusion.rows
    assert matrix.tolist() == confusion.tolist()


def test_scores_survive_json() -> None:
    found = classification_scores(Confusion.of_matrix(np.array([[3, 1], [0, 2]])), 1.5, ["no", "yes"])
    text = found.model_dump_json(by_alias=True)
    assert ClassificationScores.model_validate_json(text) == found
    assert json.loads(text)["perClass"][1]["name"] == "yes"


def test_scores_of_earlier_versions_had_a_whole_matrix() -> None:
    found = classification_scores(
        Confusion.of_matrix(np.array([[3, 1, 0], [0, 2, 0], [0, 0, 0]])), 1.5, ["no", "yes", "other"]
    )
    old = json.loads(found.model_dump_json(by_alias=True)) | {"confusion": [[3, 1, 0], [0, 2, 0], [0, 0, 0]]}
    assert ClassificationScores.model_validate_json(json.dumps(old)) == found
    assert found.confusion == Confusion(true=[0, 0, 1], predicted=[0, 1, 1], rows=[3, 1, 2])


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_says_that_training_has_diverged(loss: float) -> None:
    said = (
        f"training diverged: the loss is {loss} when the model is scored. Lower the optimizer's learningRate, "
        "add a warm-up (spec.training.scheduler) or set spec.training.gradientClipping."
    )
    for score in (
        lambda: classification_scores(Confusion.of_matrix(np.eye(2, dtype=np.int64)), loss, ["no", "yes"]),
        lambda: language_scores(loss, 3),
    ):
        with pytest.raises(Diverged) as error:
            score()
        assert str(error.value) == said


def test_every_class_has_its_row_of_the_confusion_matrix() -> None:
    with pytest.raises(IndexError, match="out of bounds"):
        classification_scores(Confusion.of_matrix(np.eye(3, dtype=np.int64)), 1.0, ["no", "yes"])


@pytest.mark.parametrize("facts", [facts for facts in KINDS.values() if facts.scores], ids=lambda facts: facts.field)
def test_each_kind_of_model_finds_its_scores_and_their_section_of_the_report(facts: Facts) -> None:
    for found in scores_types(facts):
        assert issubclass(found, Scores)
        assert (SECTIONS / found.section).is_file()
