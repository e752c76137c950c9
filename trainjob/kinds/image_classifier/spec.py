"""`spec.model.imageClassifier`."""

from typing import ClassVar

from trainjob.kinds.classifier import LABEL_METRICS, METRICS, SCORES_OF_LABELS, Classifier
from trainjob.kinds.facts import ColumnFields, Facts
from trainjob.kinds.image_network import ImageNetwork
from trainjob.kinds.usage import Library, Usage, usage_of_predictor


class ImageClassifier(ImageNetwork, Classifier):
    """An image network: one label for each grayscale or RGB image."""

    facts: ClassVar[Facts] = Facts(
        field="imageClassifier",
        noun="classifier of images",
        hub_task="image-classification",
        scores=SCORES_OF_LABELS,
        takes_several_labels=True,
        needs_dataset=True,
        formats=(),
        columns=ColumnFields(allowed=("image", "label", "labels"), required={}),
        metrics=METRICS | LABEL_METRICS,
        abilities=frozenset({"tuning", "distillation", "compression"}),
        usual_baselines=("mostFrequent", "pixels"),
        not_tuned=("size.height", "size.width", "freezeEncoder"),
        earlier_names=("image", "pretrained-image"),
    )

    @property
    def description(self) -> str:
        if self.pretrained is None:
            return f"Image classifier, {self.chosen.upper()}"
        return f"Image classifier on {self.pretrained}"

    @property
    def library(self) -> Library | None:
        if self.pretrained is None:
            return None
        return Library(
            "transformers",
            "from transformers import AutoImageProcessor, AutoModelForImageClassification\n\n"
            'processor = AutoImageProcessor.from_pretrained("FOLDER", backend="pil")\n'
            'model = AutoModelForImageClassification.from_pretrained("FOLDER")',
        )

    def usage(self, uri: str) -> Usage:
        return usage_of_predictor(uri, "--image image.png", '["image.png"]', "images/")

    @property
    def usual_learning_rate(self) -> float:
        return self.rate_of(self.pretrained, self.freeze_encoder)
