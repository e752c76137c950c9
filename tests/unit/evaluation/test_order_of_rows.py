"""Estimates with intervals do not depend on the order in which rows were scored."""

import numpy as np
import pytest

from trainjob.evaluation.estimates import Judge
from trainjob.evaluation.label_estimates import LabelJudge
from trainjob.evaluation.number_estimates import NumberJudge
from trainjob.evaluation.ranks import RankJudge
from trainjob.evaluation.several_number_estimates import SeveralNumbersJudge
from trainjob.evaluation.similarity import SimilarityJudge
from trainjob.evaluation.span_estimates import SpanJudge

ROWS = 60


@pytest.mark.parametrize("judge", [NumberJudge(), SimilarityJudge(), SeveralNumbersJudge(["a", "b"])], ids=repr)
def test_numbers(judge: Judge):
    random = np.random.default_rng(0)
    shape = (ROWS, 2) if isinstance(judge, SeveralNumbersJudge) else (ROWS,)
    labels = random.integers(0, 9, shape).astype(np.float64)  # some are equal
    _same_in_any_order(judge, labels, labels + random.normal(size=shape))


def test_ranks():
    ranks = np.random.default_rng(0).integers(0, 20, ROWS)
    _same_in_any_order(RankJudge(), np.zeros(ROWS, np.int64), ranks)


def test_several_labels():
    labels, predicted = np.random.default_rng(0).integers(0, 2, (2, ROWS, 3)).astype(bool)
    _same_in_any_order(LabelJudge(["a", "b", "c"]), labels, predicted)


def test_spans():
    found = np.array(['[[0, 2, "A"]]', '[[0, 3, "A"]]', '[[0, 2, "B"], [4, 5, "A"]]', "[]"], object)
    chosen = np.random.default_rng(0).integers(0, len(found), (2, ROWS))
    _same_in_any_order(SpanJudge(), found[chosen[0]], found[chosen[1]])


def _same_in_any_order(judge: Judge, labels: np.ndarray, predicted: np.ndarray) -> None:
    order = np.random.default_rng(1).permutation(ROWS)
    assert judge.estimates(labels[order], predicted[order]) == judge.estimates(labels, predicted)
