"""The image regressor: what `trainjob.kinds.kind.Kind` asks of it."""

from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, ImageRegressor
from trainjob.kinds.image_kind import ImageKind
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.image_fit import LABEL
from trainjob.kinds.targets.number import Number, NumberLabels

if TYPE_CHECKING:
    from trainjob.models.classifier import Classifier


class ImageRegressorKind(ImageKind):
    facts = ImageRegressor.facts

    def label_reader(self, dataset: Dataset, spec: ImageRegressor) -> NumberLabels:
        return NumberLabels(LABEL)

    def load_target(self, state: dict[str, Any]) -> Number:
        return Number.load(state)

    def build(self, spec: ImageRegressor, images: ImageInput, target: Number, as_stored: bool) -> "Classifier[Any]":
        from trainjob.kinds.image_classifier import network

        if spec.pretrained is None:
            return network.build(network.RegressorConfig.of(images, model=spec), images)
        from trainjob.kinds.image_classifier import pretrained
        from trainjob.models.pretrained import NUMBER_CONFIG

        return pretrained.build(spec, images, NUMBER_CONFIG)


KIND = ImageRegressorKind()
