"""The text classifier as a `trainjob.kinds.kind.Kind`."""

from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TextClassifier
from trainjob.data.read.label_lists import with_labels, with_lists
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.classifier_kind import ClassifierKind
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.targets.class_or_labels import ClassOrLabels, ClassTarget
from trainjob.kinds.text_kind import TextKind

if TYPE_CHECKING:
    from trainjob.kinds.data_preview import DataPreview
    from trainjob.models.classifier import TrainableClassifier


class TextClassifierKind(ClassifierKind, TextKind):
    facts = TextClassifier.facts

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        nested = [] if dataset.label is None else [dataset.label]
        return with_labels(dataset, table_parts(source, endpoint, labelled, self.facts.field, nested), with_lists)

    def label_reader(self, dataset: Dataset, spec: TextClassifier) -> ClassOrLabels:
        return ClassOrLabels.of(dataset, spec)

    def build(
        self, spec: TextClassifier, texts: TextInput, target: ClassTarget, as_stored: bool
    ) -> "TrainableClassifier[Any]":
        from trainjob.kinds.text_classifier import network
        from trainjob.models.pretrained import label_config

        return network.build(spec, texts, label_config(target.classes, target.loss(spec)), as_stored)

    def table_kind(self, preview: "DataPreview") -> str | None:
        """The table classifier learns one class of each row."""
        return "tableClassifier" if preview.several_labels() is None else None


KIND = TextClassifierKind()
