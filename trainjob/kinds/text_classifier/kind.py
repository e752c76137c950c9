"""The text classifier: what `trainjob.kinds.kind.Kind` asks of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TextClassifier
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.kind import Kind
from trainjob.kinds.targets.one_class import OneClass
from trainjob.kinds.text_classifier.fit import fit_classifier

if TYPE_CHECKING:
    from trainjob.models.classifier import Classifier


class TextClassifierKind:
    facts = TextClassifier.facts
    fit = staticmethod(fit_classifier)

    def label_column(self, dataset: Dataset) -> str | None:
        return dataset.label

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, self.facts.field)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[TextInput, OneClass]:
        target = OneClass.load(state)
        return TextInput.load(folder, state), target

    def build(self, spec: TextClassifier, texts: TextInput, target: OneClass, as_stored: bool) -> "Classifier[Any]":
        from trainjob.kinds.text_classifier import network

        return network.build(spec, texts, target, as_stored)

    def load(self, folder: Path, texts: TextInput) -> "Classifier[Any]":
        from trainjob.kinds.text_classifier import network

        return network.load(folder)

    def worker_modules(self, spec: TextClassifier) -> list[str]:
        return ["trainjob.kinds.text_classifier.network"]


KIND: Kind = TextClassifierKind()
