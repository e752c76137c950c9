"""Each text has spans of several types."""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from trainjob.api import Dataset, TrainJobSpec
from trainjob.data.batches.examples import IGNORED, Examples
from trainjob.data.first_pass.survey import Survey, T, Translation, refuse_too_few
from trainjob.data.read.bad_rows import BadRows, TooFewRows
from trainjob.data.read.csv_injection import PREDICTION
from trainjob.data.read.rows import OnBadRow, Rows
from trainjob.data.read.spans import read_spans
from trainjob.errors import DataError, listed
from trainjob.evaluation.span_estimates import SpanJudge
from trainjob.kinds.target import Guesses, Target
from trainjob.kinds.targets.class_reply import DIGITS
from trainjob.kinds.token_classifier.input import unpacked
from trainjob.kinds.token_classifier.reply import FoundSpan, Spans
from trainjob.kinds.token_classifier.tags import runs_of, tag_names
from trainjob.schema.spans import Span, parsed, written

if TYPE_CHECKING:
    from torch import Tensor, nn

    from trainjob.kinds.token_classifier.objective import SpanObjective

FEW_SPANS = 10
"""A type with fewer spans in the training rows is mentioned."""


@dataclass
class SpanLabels:
    """Reads spans in the first pass."""

    text: str
    column: str

    def read(self, rows: Rows, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        return read_spans(rows, self.text, self.column, on_bad)

    def merge(self, later: "SpanLabels") -> Translation:
        return lambda labels: labels

    def fit(self, survey: Survey[T], dataset: Dataset, bad: BadRows) -> "tuple[Survey[T], SpanTarget]":
        """Raises DataError where there are no spans, types that differ only in case or Unicode form, or too few
        different rows."""
        labels, source = survey.labels, listed(dataset.train.all_uris)
        assert labels is not None
        counts = _counts(labels)
        if not counts:
            raise TooFewRows(f"{source}: no row has a span")
        by_case: dict[str, list[str]] = defaultdict(list)
        for name in sorted(counts):
            by_case[unicodedata.normalize("NFC", name).casefold()].append(name)
        if alike := [names for names in by_case.values() if len(names) > 1]:
            shown = [" and ".join(f'"{name}" ({counts[name]:,} spans)' for name in names) for names in alike]
            raise DataError(
                f"{source}: types differ only in case or Unicode form: {listed(shown)}; write each in one way"
            )
        refuse_too_few(survey.hashes, dataset)
        return survey, SpanTarget(self.text, sorted(counts))


@dataclass(frozen=True)
class SpanTarget(Target):
    """Labels are spans in JSON; the network has an output for each tag of each token."""

    text: str
    """The column of the texts, in which spans lie."""
    types: list[str]
    """Sorted."""
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Spans of each type in the training rows."""

    @property
    def width(self) -> int:
        return len(tag_names(self.types))

    def sizes(self) -> dict[str, int]:
        return {"types": len(self.types)}

    def in_words(self) -> str:
        largest = sorted(self.types, key=lambda name: -self.counts.get(name, 0))
        shown = [f"{name} ({self.counts.get(name, 0):,})" for name in largest]
        types = "1 type" if len(self.types) == 1 else f"{len(self.types):,} types"
        return f"{types}; spans of each in the training rows: {listed(shown, 20)}"

    def completed(self, labels: np.ndarray) -> Self:
        return replace(self, counts=dict(sorted(_counts(labels).items())))

    def read(self, rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        return read_spans(rows, self.text, column, on_bad, self.types)

    def strata(self, labels: np.ndarray | None, rows: int) -> np.ndarray:
        """Texts with spans, and those without."""
        if labels is None:
            return np.zeros(rows, np.int64)
        return np.array([label == written([]) for label in labels], np.int64)

    def label_bytes(self, labels: np.ndarray | None, rows: int) -> bytes:
        return b"" if labels is None else "\n".join(labels).encode()

    def notes(self) -> list[str]:
        few = [f"{name} ({self.counts.get(name, 0)})" for name in self.types if self.counts.get(name, 0) < FEW_SPANS]
        return [f"types with fewer than {FEW_SPANS} spans in the training rows: {listed(few)}"] if few else []

    def labels(self, examples: Examples, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The tags, int64 [n, length]; IGNORED where there is no token."""
        tags = np.full(inputs["tokens"].shape, IGNORED, np.int64)
        for index, row in enumerate(unpacked(examples)):
            tags[index, : len(row.tags)] = row.tags
        return tags

    def objective(self, spec: TrainJobSpec | None, module: "nn.Module") -> "SpanObjective":
        from trainjob.kinds.token_classifier.objective import SpanObjective

        return SpanObjective(self)

    def found(self, outputs: "Tensor") -> list[list[tuple[Span, float]]]:
        """The spans of each text with their probabilities, of outputs float32 [n, length, tags + 2], as the network
        returns them."""
        numbers = outputs.float().cpu()
        probabilities, tags = numbers[..., :-2].softmax(-1).max(-1)
        offsets = numbers[..., -2:].long()
        tags[offsets[..., 1] == 0] = 0
        return [
            [
                (
                    (int(token_offsets[start, 0]), int(token_offsets[stop - 1, 1]), self.types[kind]),
                    float(likely[start:stop].mean()),
                )
                for start, stop, kind in runs_of(tags_of_text)
            ]
            for tags_of_text, likely, token_offsets in zip(
                tags.numpy(), probabilities.numpy(), offsets.numpy(), strict=True
            )
        ]

    def answer(self, outputs: "Tensor", module: "nn.Module") -> pa.Table:
        """The spans of each text in JSON."""
        cells = [json.dumps([each.model_dump() for each in reply.spans]) for reply in self.replies(outputs, module)]
        return pa.table({PREDICTION: pa.array(cells, pa.string())})

    @property
    def reply_type(self) -> type[Spans]:
        return Spans

    def replies(self, outputs: "Tensor", module: "nn.Module") -> list[Spans]:
        return [
            Spans(
                spans=[
                    FoundSpan(start=start, end=end, type=kind, probability=round(likely, DIGITS))
                    for (start, end, kind), likely in spans
                ]
            )
            for spans in self.found(outputs)
        ]

    @property
    def judge(self) -> SpanJudge:
        return SpanJudge()

    def linear(
        self, features: list[str], labels: np.ndarray, held: list[str], held_labels: np.ndarray | None = None
    ) -> Guesses:
        """Looks up the strings of the training spans, the longest first, as whole words, each with the type that it has
        most often. Strings that are usually not a span are left out."""
        return Guesses(known_strings(features, labels, held))

    def save(self) -> dict[str, Any]:
        return {"text": self.text, "types": self.types, "counts": self.counts}

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """Takes its fields out of the content of preprocessor.json."""
        return cls(state.pop("text"), state.pop("types"), state.pop("counts"))


def _counts(labels: np.ndarray) -> Counter[str]:
    return Counter(kind for label in labels for _, _, kind in parsed(label))


def known_strings(texts: list[str], labels: np.ndarray, held: list[str]) -> np.ndarray:
    """The predictions for the texts `held`, in JSON, objects [m]."""
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for text, label in zip(texts, labels, strict=True):
        for start, end, kind in parsed(label):
            types[text[start:end]][kind] += 1
    found = np.empty(len(held), object)
    found[:] = written([])
    if not types:
        return found
    longest_first = sorted(types, key=lambda string: (-len(string), string))
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")
    seen = Counter(match[0] for text in texts for match in pattern.finditer(text))
    best = {
        string: counts.most_common(1)[0][0] for string, counts in types.items() if 2 * counts.total() >= seen[string]
    }
    for index, text in enumerate(held):
        spans = [(match.start(), match.end(), best[match[0]]) for match in pattern.finditer(text) if match[0] in best]
        found[index] = written(spans)
    return found
