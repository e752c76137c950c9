"""The text regressor: what `trainjob.kinds.kind.Kind` asks of it."""

from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, TextRegressor
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.targets.number import Number, NumberLabels
from trainjob.kinds.text_kind import TextKind

if TYPE_CHECKING:
    from trainjob.models.classifier import Classifier


class TextRegressorKind(TextKind):
    facts = TextRegressor.facts

    def label_reader(self, dataset: Dataset, spec: TextRegressor) -> NumberLabels:
        return NumberLabels(str(dataset.label))

    def load_target(self, state: dict[str, Any]) -> Number:
        return Number.load(state)

    def build(self, spec: TextRegressor, texts: TextInput, target: Number, as_stored: bool) -> "Classifier[Any]":
        from trainjob.kinds.text_classifier import network
        from trainjob.models.pretrained import NUMBER_CONFIG

        return network.build(spec, texts, NUMBER_CONFIG, as_stored)


KIND = TextRegressorKind()
