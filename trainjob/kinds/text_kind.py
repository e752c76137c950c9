"""The part of a kind's code that is the same for all models that answer a text with a network of transformers."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source
from trainjob.data.first_pass.survey import FittedOn, LabelReader
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.label_lists import label_column
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.facts import Facts
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.inputs.text_fit import fit_texts
from trainjob.kinds.kind import Kind
from trainjob.kinds.text_network import TextNetwork

if TYPE_CHECKING:
    from trainjob.models.classifier import AnsweringClassifier, TrainableClassifier


class TextKind(Kind):
    """A kind that joins texts and a target. A subclass reads the labels and builds the network."""

    facts: Facts

    def label_column(self, dataset: Dataset) -> str | None:
        return label_column(dataset)

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, labelled, self.facts.field)

    @abstractmethod
    def label_reader(self, dataset: Dataset, spec: Any) -> LabelReader:
        """Reads the labels of the training rows."""

    @abstractmethod
    def load_target(self, state: dict[str, Any]) -> Any:
        """The target that was saved with these fields of preprocessor.json."""

    def fit(
        self,
        dataset: Dataset,
        spec: TextNetwork,
        train: Sequence[SourcePart],
        seed: int,
        mapped: Mapper,
        bad: BadRows,
        /,
    ) -> FittedOn:
        return fit_texts(self.label_reader(dataset, spec), dataset, spec, train, seed, mapped, bad)

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

    def worker_modules(self, spec: TextNetwork) -> list[str]:
        return ["trainjob.kinds.text_classifier.network"]
