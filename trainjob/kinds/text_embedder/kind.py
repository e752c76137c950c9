"""The text embedder as a `trainjob.kinds.kind.Kind`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TextEmbedder
from trainjob.data.first_pass.survey import FittedOn, LabelReader
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.separate_texts import SeparateTexts
from trainjob.kinds.inputs.text_fit import fit_texts
from trainjob.kinds.kind import Kind
from trainjob.kinds.targets.matching_text import MatchingText, PairLabels
from trainjob.kinds.targets.number import NumberLabels
from trainjob.kinds.targets.same_class import SameClass, SameClassLabels
from trainjob.kinds.targets.scored_texts import ScoredTexts, ScoreLabels
from trainjob.kinds.targets.vectors import Vectors

if TYPE_CHECKING:
    from trainjob.kinds.text_embedder.network import EmbedderModule


class TextEmbedderKind(Kind):
    facts = TextEmbedder.facts

    def label_column(self, dataset: Dataset) -> str | None:
        """The second text is the label of the first where there is no other."""
        if dataset.label is not None:
            return dataset.label
        assert dataset.text_pair is not None
        return dataset.text_pair[0]

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, labelled, self.facts.field)

    def fit(
        self,
        dataset: Dataset,
        spec: TextEmbedder,
        train: Sequence[SourcePart],
        seed: int,
        mapper: Mapper,
        bad: BadRows,
        /,
    ) -> FittedOn:
        return fit_texts(_labels(dataset, spec), dataset, spec, train, seed, mapper, bad, SeparateTexts)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[SeparateTexts, Vectors]:
        target = _load_target(state)
        return SeparateTexts.load(folder, state), target

    def build(self, spec: TextEmbedder, texts: SeparateTexts, target: Vectors, as_stored: bool) -> "EmbedderModule":
        from trainjob.kinds.text_embedder import network

        return network.build(spec, texts, as_stored)

    def load(self, folder: Path, texts: SeparateTexts) -> "EmbedderModule":
        from trainjob.kinds.text_embedder import network

        return network.load(folder, texts)


def _labels(dataset: Dataset, spec: TextEmbedder) -> LabelReader:
    """The reader of pairs, of pairs with scores, or of texts with classes."""
    assert dataset.text is not None
    width = _width(spec)
    if dataset.text_pair is None:
        assert dataset.label is not None
        return SameClassLabels(dataset.text, width, dataset.label)
    if dataset.label is not None:
        return ScoreLabels(dataset.text, dataset.text_pair, width, NumberLabels(dataset.label))
    return PairLabels(dataset.text, dataset.text_pair, dataset.text_negative or [], width)


def _load_target(state: dict[str, Any]) -> Vectors:
    """The target that was saved with these fields of preprocessor.json, which are taken out."""
    if "same_class" in state:
        return SameClass.load(state)
    return ScoredTexts.load(state) if "scored" in state else MatchingText.load(state)


def _width(spec: TextEmbedder) -> int:
    """The length of the vectors. Raises UserError where the pretrained encoder cannot be loaded."""
    if spec.encoder is not None:
        return spec.encoder.hidden_size
    import torch

    from trainjob.kinds.pooled_encoder import pretrained_encoder

    with torch.device("meta"):
        network = pretrained_encoder(str(spec.pretrained), f"{spec.path}.pretrained", as_stored=True)
        return network.config.get_text_config().hidden_size


KIND = TextEmbedderKind()
