"""The token classifier as a `trainjob.kinds.kind.Kind`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TokenClassifier
from trainjob.data.first_pass.survey import FittedOn
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.rows import SourcePart
from trainjob.data.read.token_tags import TokenRows
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.kind import Kind
from trainjob.kinds.token_classifier.fit import fit_spans
from trainjob.kinds.token_classifier.input import SpanInput
from trainjob.kinds.token_classifier.target import SpanTarget

if TYPE_CHECKING:
    from trainjob.models.trainable import Trainable


class TokenClassifierKind(Kind):
    facts = TokenClassifier.facts

    def label_column(self, dataset: Dataset) -> str | None:
        return dataset.label

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        text, label = dataset.text or [], [] if dataset.label is None else [dataset.label]
        optional = [] if labelled else label
        found = table_parts(source, endpoint, labelled, self.facts.field, nested=[*text, *label], optional=optional)
        return [TokenRows(part, text[0], dataset.label) for part in found] if len(text) == 1 else found

    def fit(
        self,
        dataset: Dataset,
        spec: TokenClassifier,
        train: Sequence[SourcePart],
        seed: int,
        mapper: Mapper,
        bad: BadRows,
        /,
    ) -> FittedOn:
        return fit_spans(dataset, spec, train, seed, mapper, bad)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[SpanInput, SpanTarget]:
        target = SpanTarget.load(state)
        return SpanInput.load(folder, state, target.types), target

    def build(
        self, spec: TokenClassifier, texts: SpanInput, target: SpanTarget, as_stored: bool, /
    ) -> "Trainable[Any]":
        from trainjob.kinds.token_classifier import network

        return network.build(spec, texts, target.types, as_stored)

    def load(self, folder: Path, texts: SpanInput, /) -> "Trainable[Any]":
        from trainjob.kinds.token_classifier import network

        return network.load(folder, texts)


KIND = TokenClassifierKind()
