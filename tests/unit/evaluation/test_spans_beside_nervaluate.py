"""The scores of spans beside those of nervaluate, on random spans."""

from typing import Any

import numpy as np
import pytest
from nervaluate import Evaluator

from trainjob.evaluation.scores.spans import span_scores
from trainjob.schema.spans import Span, written

TYPES = ["city", "person", "time"]


def spans(chance: np.random.Generator) -> list[Span]:
    """Up to six spans of a text of 40 characters that do not overlap."""
    ends = np.sort(chance.choice(40, 2 * int(chance.integers(0, 7)), replace=False)).tolist()
    return [(start, end, str(chance.choice(TYPES))) for start, end in zip(ends[::2], ends[1::2], strict=True)]


def moved(span: Span, chance: np.random.Generator) -> Span:
    """The same span, one that begins a character later, or one of another type."""
    start, end, kind = span
    return [span, (min(start + 1, end - 1), end, kind), (start, end, str(chance.choice(TYPES)))][chance.integers(0, 3)]


def objects(found: list[Span]) -> list[dict[str, Any]]:
    """Spans for nervaluate, whose end is the last character."""
    return [{"start": start, "end": end - 1, "label": kind} for start, end, kind in found]


def test_exact_and_partial_scores_are_those_of_nervaluate() -> None:
    chance = np.random.default_rng(0)
    true = [spans(chance) for _ in range(300)]
    found = [[moved(span, chance) for span in own] if chance.random() < 0.8 else spans(chance) for own in true]
    ours = span_scores(np.array([*map(written, true)], object), np.array([*map(written, found)], object), 0.0, 1)
    theirs = Evaluator([*map(objects, true)], [*map(objects, found)], tags=TYPES, loader="dict").evaluate()
    strict = theirs["overall"]["strict"]
    found_scores = (ours.precision.value, ours.recall.value, ours.f1.value)
    assert found_scores == pytest.approx((strict.precision, strict.recall, strict.f1), abs=1e-9)
    half_right = 0.0
    for each in ours.types:
        own = theirs["entities"][each.name]["strict"]
        assert (each.precision, each.recall, each.f1) == pytest.approx((own.precision, own.recall, own.f1), abs=1e-9)
        # Nervaluate's partial strategy ignores types, ours does not: it gets the spans of one type at a time.
        one_type = [[[span for span in row if span[2] == each.name] for row in rows] for rows in (true, found)]
        alone = Evaluator(*([*map(objects, rows)] for rows in one_type), tags=[each.name], loader="dict").evaluate()
        partial = alone["overall"]["partial"]
        assert partial.partial > 0
        assert each.partial_f1 == pytest.approx(partial.f1, abs=1e-9)
        half_right += partial.correct + partial.partial / 2
    spans_in_all = sum(map(len, true)) + sum(map(len, found))
    assert ours.partial_f1.value == pytest.approx(2 * half_right / spans_in_all, abs=1e-9)
