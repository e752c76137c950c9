"""The common code of text classifiers and text regressors."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source
from trainjob.data.first_pass.survey import FittedOn
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.label_lists import label_column
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.inputs.text_fit import fit_texts
from trainjob.kinds.labelled_kind import LabelledKind
from trainjob.kinds.text_network import TextNetwork

if TYPE_CHECKING:
    from trainjob.kinds.data_preview import DataPreview, Proposal
    from trainjob.models.classifier import AnsweringClassifier, TrainableClassifier


class TextKind(LabelledKind):
    """A kind that joins texts and a target. A subclass reads the labels and builds the network."""

    def label_column(self, dataset: Dataset) -> str | None:
        return label_column(dataset)

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, labelled, self.facts.field)

    def fit(
        self,
        dataset: Dataset,
        spec: TextNetwork,
        train: Sequence[SourcePart],
        seed: int,
        mapper: Mapper,
        bad: BadRows,
        /,
    ) -> FittedOn:
        return fit_texts(self.label_reader(dataset, spec), dataset, spec, train, seed, mapper, bad)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[TextInput, Any]:
        target = self.load_target(state)
        return TextInput.load(folder, state), target

    @abstractmethod
    def build(self, spec: Any, texts: TextInput, target: Any, as_stored: bool) -> "TrainableClassifier[Any]": ...

    def load(self, folder: Path, texts: TextInput) -> "TrainableClassifier[Any]":
        from trainjob.kinds.text_classifier import network

        return network.load(folder)

    def load_to_answer(self, folder: Path, texts: TextInput) -> "AnsweringClassifier":
        from trainjob.kinds.text_classifier import saved_encoder

        return saved_encoder.load(folder) or self.load(folder, texts)

    @abstractmethod
    def table_kind(self, preview: "DataPreview") -> str | None:
        """The kind that also learns from other columns, if it can have the same labels."""

    def label_candidates(self, preview: "DataPreview") -> "DataPreview":
        from trainjob.kinds.inputs.proposed_texts import refuse_without_texts

        refuse_without_texts(preview)
        return preview

    def proposal(self, preview: "DataPreview", fields: Mapping[str, Any], why: str) -> "Proposal":
        from trainjob.kinds.inputs.proposed_texts import text_proposal

        return text_proposal(self.facts.field, preview, fields, why, self.table_kind(preview))
