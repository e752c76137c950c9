"""The image regressor as a `trainjob.kinds.kind.Kind`."""

from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, ImageRegressor, Source
from trainjob.data.read.numbers import with_numbers
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.image_kind import ImageKind
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.parts import image_parts
from trainjob.kinds.regressor_kind import RegressorKind
from trainjob.kinds.targets.one_or_several_numbers import NumberTarget

if TYPE_CHECKING:
    from trainjob.models.classifier import TrainableClassifier


class ImageRegressorKind(RegressorKind, ImageKind):
    facts = ImageRegressor.facts

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return image_parts(dataset, source, endpoint, labelled, with_numbers)

    def build(
        self, spec: ImageRegressor, images: ImageInput, target: NumberTarget, as_stored: bool
    ) -> "TrainableClassifier[Any]":
        from trainjob.kinds.image_classifier import network

        if spec.pretrained is None:
            return network.build(network.RegressorConfig.of(images, model=spec, outputs=target.width), images)
        from trainjob.kinds.image_classifier import pretrained
        from trainjob.models.pretrained import number_config

        return pretrained.build(spec, images, number_config(target.output_names))


KIND = ImageRegressorKind()
