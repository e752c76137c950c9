"""The image classifier: what `trainjob.kinds.kind.Kind` asks of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, ImageClassifier
from trainjob.kinds.image_classifier.fit import fit_images
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.image_processor import PretrainedImageInput
from trainjob.kinds.inputs.parts import image_parts
from trainjob.kinds.kind import Kind
from trainjob.kinds.targets.class_or_labels import ClassTarget, load_target

if TYPE_CHECKING:
    from trainjob.models.classifier import Classifier


class ImageClassifierKind:
    facts = ImageClassifier.facts
    parts = staticmethod(image_parts)
    fit = staticmethod(fit_images)

    def label_column(self, dataset: Dataset) -> str | None:
        """Readers of images name it so, whatever the column of a table is called."""
        return "label"

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[ImageInput, ClassTarget]:
        target, is_pretrained = load_target(state), state.pop("pretrained", False) or saved_as == "pretrained-image"
        return (PretrainedImageInput if is_pretrained else ImageInput).load(folder, state), target

    def build(
        self, spec: ImageClassifier, images: ImageInput, target: ClassTarget, as_stored: bool
    ) -> "Classifier[Any]":
        from trainjob.kinds.image_classifier import network

        spec = spec.model_copy(update={"loss": target.loss(spec)})
        if spec.pretrained is None:
            return network.build(spec, images, target)
        from trainjob.kinds.image_classifier import pretrained

        return pretrained.build(spec, images, target)

    def load(self, folder: Path, images: ImageInput) -> "Classifier[Any]":
        from trainjob.kinds.image_classifier import network

        if network.is_saved_in(folder):
            return network.load(folder, images)
        from trainjob.kinds.image_classifier import pretrained

        return pretrained.load(folder, images)

    def worker_modules(self, spec: ImageClassifier) -> list[str]:
        return [] if spec.pretrained is None else ["trainjob.kinds.image_classifier.pretrained"]


KIND: Kind = ImageClassifierKind()
