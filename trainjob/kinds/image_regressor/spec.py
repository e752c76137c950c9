"""`spec.model.imageRegressor`."""

from typing import ClassVar

from trainjob.kinds.facts import ColumnFields, Facts
from trainjob.kinds.image_network import ImageNetwork
from trainjob.kinds.regressor import ERRORS, METRICS, SCALES_LOSSES, SCORES, Regressor
from trainjob.kinds.usage import Usage, usage_of_regressor


class ImageRegressor(ImageNetwork, Regressor):
    """An image network: one number for each grayscale or RGB image, or several."""

    facts: ClassVar[Facts] = Facts(
        field="imageRegressor",
        noun="regressor of images",
        hub_task="image-classification",
        scores=SCORES,
        needs_dataset=True,
        formats=(),
        columns=ColumnFields(allowed=("image", "label", "labels"), required={}),
        metrics=METRICS,
        errors=ERRORS,
        scales_losses=SCALES_LOSSES,
        kind_for_classes="imageClassifier",
        abilities=frozenset({"tuning"}),
        usual_baselines=("mean", "pixels"),
        not_tuned=("size.height", "size.width", "freezeEncoder"),
    )

    @property
    def description(self) -> str:
        if self.pretrained is None:
            return f"Image regressor, {self.chosen.upper()}"
        return f"Image regressor on {self.pretrained}"

    @property
    def library(self) -> None:
        """transformers loads the network, whose output is the label in standard deviations from the mean."""
        return None

    def usage(self, uri: str) -> Usage:
        return usage_of_regressor(uri, "--image image.png", '["image.png"]', "images/")

    @property
    def usual_learning_rate(self) -> float:
        return self.rate_of(self.pretrained, self.freeze_encoder)
