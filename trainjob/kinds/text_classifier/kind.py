"""The text classifier as a `trainjob.kinds.kind.Kind`."""

from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TextClassifier
from trainjob.data.read.label_lists import with_labels, with_lists
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.targets.class_or_labels import ClassOrLabels, ClassTarget, load_target
from trainjob.kinds.text_kind import TextKind

if TYPE_CHECKING:
    from trainjob.models.classifier import TrainableClassifier


class TextClassifierKind(TextKind):
    facts = TextClassifier.facts

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        nested = [] if dataset.label is None else [dataset.label]
        return with_labels(dataset, table_parts(source, endpoint, labelled, self.facts.field, nested), with_lists)

    def label_reader(self, dataset: Dataset, spec: TextClassifier) -> ClassOrLabels:
        return ClassOrLabels.of(dataset, spec)

    def load_target(self, state: dict[str, Any]) -> ClassTarget:
        return load_target(state)

    def build(
        self, spec: TextClassifier, texts: TextInput, target: ClassTarget, as_stored: bool
    ) -> "TrainableClassifier[Any]":
        from trainjob.kinds.text_classifier import network
        from trainjob.models.pretrained import label_config

        return network.build(spec, texts, label_config(target.classes, target.loss(spec)), as_stored)


KIND = TextClassifierKind()
