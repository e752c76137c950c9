"""The image classifier as a `trainjob.kinds.kind.Kind`."""

from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, ImageClassifier
from trainjob.kinds.classifier_kind import ClassifierKind
from trainjob.kinds.image_kind import ImageKind
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.image_fit import LABEL
from trainjob.kinds.targets.class_or_labels import ClassOrLabels, ClassTarget

if TYPE_CHECKING:
    from trainjob.kinds.data_preview import DataPreview, Proposal
    from trainjob.models.classifier import TrainableClassifier


class ImageClassifierKind(ClassifierKind, ImageKind):
    facts = ImageClassifier.facts

    def label_reader(self, dataset: Dataset, spec: ImageClassifier) -> ClassOrLabels:
        return ClassOrLabels.of(dataset, spec, LABEL)

    def build(
        self, spec: ImageClassifier, images: ImageInput, target: ClassTarget, as_stored: bool
    ) -> "TrainableClassifier[Any]":
        from trainjob.kinds.image_classifier import network

        spec = spec.model_copy(update={"loss": target.loss(spec)})
        if spec.pretrained is None:
            return network.build(network.ClassifierConfig.of(images, model=spec, classes=target.classes), images)
        from trainjob.kinds.image_classifier import pretrained
        from trainjob.models.pretrained import label_config

        return pretrained.build(spec, images, label_config(target.classes, spec.loss))

    def propose(self, preview: "DataPreview") -> "Proposal":
        """Files of images have their classes in their paths."""
        return self.proposal(preview, {}, "") if preview.has_images else super().propose(preview)


KIND = ImageClassifierKind()
