"""The image regressor as a `trainjob.kinds.kind.Kind`."""

from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, ImageRegressor, Source
from trainjob.data.first_pass.survey import LabelReader
from trainjob.data.read.numbers import with_numbers
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.image_kind import ImageKind
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.image_fit import LABEL
from trainjob.kinds.inputs.parts import image_parts
from trainjob.kinds.targets.one_or_several_numbers import NumberTarget, load_target, number_reader

if TYPE_CHECKING:
    from trainjob.models.classifier import TrainableClassifier


class ImageRegressorKind(ImageKind):
    facts = ImageRegressor.facts

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return image_parts(dataset, source, endpoint, labelled, with_numbers)

    def label_reader(self, dataset: Dataset, spec: ImageRegressor) -> LabelReader:
        return number_reader(dataset, LABEL)

    def load_target(self, state: dict[str, Any]) -> NumberTarget:
        return load_target(state)

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
