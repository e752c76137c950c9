"""The image classifier: what `trainjob.kinds.kind.Kind` asks of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, ImageClassifier, Source, TrainJobSpec
from trainjob.data.bad_rows import BadRows
from trainjob.data.rows import Part
from trainjob.data.survey import FittedOn
from trainjob.data.tasks import Mapper
from trainjob.kinds.image_classifier.fit import fit_images
from trainjob.kinds.inputs.image import ImagePreprocessor
from trainjob.kinds.inputs.image_processor import PretrainedImagePreprocessor
from trainjob.kinds.inputs.parts import image_parts

if TYPE_CHECKING:
    from trainjob.kinds.targets.classification import Classification
    from trainjob.models.classifier import Classifier


class ImageClassifierKind:
    facts = ImageClassifier.facts

    def label_column(self, dataset: Dataset) -> str | None:
        """Readers of images name it so, whatever the column of a table is called."""
        return "label"

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[Part]:
        return image_parts(dataset, source, endpoint, labelled)

    def fit(
        self, dataset: Dataset, spec: ImageClassifier, train: Sequence[Part], seed: int, mapped: Mapper, bad: BadRows
    ) -> FittedOn:
        return fit_images(dataset, spec, train, seed, mapped, bad)

    def load_preprocessor(self, folder: Path, state: dict[str, Any]) -> ImagePreprocessor:
        is_pretrained = state.pop("pretrained", False) or state["kind"] == "pretrained-image"
        return (PretrainedImagePreprocessor if is_pretrained else ImagePreprocessor).load(folder, state)

    def build(self, spec: ImageClassifier, preprocessor: ImagePreprocessor, as_stored: bool) -> "Classifier[Any]":
        from trainjob.kinds.image_classifier import network

        if spec.pretrained is None:
            return network.build(spec, preprocessor)
        from trainjob.kinds.image_classifier import pretrained

        return pretrained.build(spec, preprocessor)

    def load(self, folder: Path, preprocessor: ImagePreprocessor) -> "Classifier[Any]":
        from trainjob.kinds.image_classifier import network

        if network.is_saved_in(folder):
            return network.load(folder, preprocessor)
        from trainjob.kinds.image_classifier import pretrained

        return pretrained.load(folder, preprocessor)

    def objective(
        self, spec: TrainJobSpec | None, preprocessor: ImagePreprocessor, module: "Classifier[Any]"
    ) -> "Classification":
        from trainjob.kinds.targets.classification import Classification

        if spec is None:
            raise ValueError("a classifier's loss is in the spec")
        return Classification(spec, preprocessor, module)

    def worker_modules(self, spec: ImageClassifier) -> list[str]:
        return [] if spec.pretrained is None else ["trainjob.kinds.image_classifier.pretrained"]


KIND = ImageClassifierKind()
