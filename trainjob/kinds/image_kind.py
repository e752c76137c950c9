"""The common code of all kinds that read images."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source
from trainjob.data.first_pass.survey import FittedOn
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.image_network import ImageNetwork
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.image_fit import LABEL, fit_images
from trainjob.kinds.inputs.image_processor import PretrainedImageInput
from trainjob.kinds.inputs.parts import image_parts
from trainjob.kinds.labelled_kind import LabelledKind

if TYPE_CHECKING:
    from trainjob.kinds.data_preview import DataPreview, Proposal
    from trainjob.models.classifier import TrainableClassifier


class ImageKind(LabelledKind):
    """A kind that joins images and a target. A subclass reads the labels and builds the network."""

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return image_parts(dataset, source, endpoint, labelled)

    def label_column(self, dataset: Dataset) -> str | None:
        """The name that readers of images give to the column of labels, whatever its name in the table."""
        return LABEL

    def fit(
        self,
        dataset: Dataset,
        spec: ImageNetwork,
        train: Sequence[SourcePart],
        seed: int,
        mapper: Mapper,
        bad: BadRows,
        /,
    ) -> FittedOn:
        return fit_images(self.label_reader(dataset, spec), dataset, spec, train, seed, mapper, bad)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[ImageInput, Any]:
        target, is_pretrained = (
            self.load_target(state),
            state.pop("pretrained", False) or saved_as == "pretrained-image",
        )
        return (PretrainedImageInput if is_pretrained else ImageInput).load(folder, state), target

    @abstractmethod
    def build(self, spec: Any, images: ImageInput, target: Any, as_stored: bool) -> "TrainableClassifier[Any]": ...

    def load(self, folder: Path, images: ImageInput) -> "TrainableClassifier[Any]":
        from trainjob.kinds.image_classifier import network

        if network.is_saved_in(folder):
            return network.load(folder, images)
        from trainjob.kinds.image_classifier import pretrained

        return pretrained.load(folder, images)

    def label_candidates(self, preview: "DataPreview") -> "DataPreview":
        from trainjob.kinds.inputs.proposed_images import beside_images

        return beside_images(preview)

    def proposal(self, preview: "DataPreview", fields: Mapping[str, Any], why: str) -> "Proposal":
        from trainjob.kinds.inputs.proposed_images import image_proposal

        return image_proposal(self.facts.field, preview, fields, why)
