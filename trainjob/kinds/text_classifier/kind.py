"""The text classifier: what `trainjob.kinds.kind.Kind` asks of it."""

from typing import TYPE_CHECKING, Any

from trainjob.api import TextClassifier
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.kind import Kind
from trainjob.kinds.targets.class_labels import ClassLabels
from trainjob.kinds.targets.one_class import OneClass
from trainjob.kinds.text_kind import TextKind

if TYPE_CHECKING:
    from trainjob.models.classifier import Classifier


class TextClassifierKind(TextKind):
    facts = TextClassifier.facts
    label_reader = ClassLabels
    target = OneClass

    def build(self, spec: TextClassifier, texts: TextInput, target: OneClass, as_stored: bool) -> "Classifier[Any]":
        from trainjob.kinds.text_classifier import network
        from trainjob.models.pretrained import label_config

        return network.build(spec, texts, label_config(target.classes, spec.loss), as_stored)


KIND: Kind = TextClassifierKind()
