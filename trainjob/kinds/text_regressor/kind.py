"""The text regressor as a `trainjob.kinds.kind.Kind`."""

from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TextRegressor
from trainjob.data.read.label_lists import with_labels
from trainjob.data.read.numbers import with_numbers
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.regressor_kind import RegressorKind
from trainjob.kinds.targets.one_or_several_numbers import NumberTarget
from trainjob.kinds.text_kind import TextKind

if TYPE_CHECKING:
    from trainjob.kinds.data_preview import DataPreview
    from trainjob.models.classifier import TrainableClassifier


class TextRegressorKind(RegressorKind, TextKind):
    facts = TextRegressor.facts

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return with_labels(dataset, super().parts(dataset, source, endpoint, labelled), with_numbers)

    def build(
        self, spec: TextRegressor, texts: TextInput, target: NumberTarget, as_stored: bool
    ) -> "TrainableClassifier[Any]":
        from trainjob.kinds.text_classifier import network
        from trainjob.models.pretrained import number_config

        return network.build(spec, texts, number_config(target.output_names), as_stored)

    def table_kind(self, preview: "DataPreview") -> str:
        return "tableRegressor"


KIND = TextRegressorKind()
