"""The text classifier: what `trainjob.kinds.kind.Kind` asks of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TextClassifier
from trainjob.data.first_pass.survey import FittedOn
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.inputs.text_fit import fit_texts
from trainjob.kinds.kind import Kind
from trainjob.kinds.targets.class_labels import ClassLabels
from trainjob.kinds.targets.one_class import OneClass

if TYPE_CHECKING:
    from trainjob.models.classifier import Classifier


class TextClassifierKind:
    facts = TextClassifier.facts

    def label_column(self, dataset: Dataset) -> str | None:
        return dataset.label

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, self.facts.field)

    def fit(
        self,
        dataset: Dataset,
        spec: TextClassifier,
        train: Sequence[SourcePart],
        seed: int,
        mapped: Mapper,
        bad: BadRows,
        /,
    ) -> FittedOn:
        assert dataset.label is not None
        return fit_texts(ClassLabels(dataset.label), dataset, spec, train, seed, mapped, bad)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[TextInput, OneClass]:
        target = OneClass.load(state)
        return TextInput.load(folder, state), target

    def build(self, spec: TextClassifier, texts: TextInput, target: OneClass, as_stored: bool) -> "Classifier[Any]":
        from trainjob.kinds.text_classifier import network
        from trainjob.models.pretrained import label_config

        return network.build(spec, texts, label_config(target.classes, spec.loss), as_stored)

    def load(self, folder: Path, texts: TextInput) -> "Classifier[Any]":
        from trainjob.kinds.text_classifier import network

        return network.load(folder)

    def worker_modules(self, spec: TextClassifier) -> list[str]:
        return ["trainjob.kinds.text_classifier.network"]


KIND: Kind = TextClassifierKind()
