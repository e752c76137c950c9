"""`spec.model.textRegressor`."""

from typing import ClassVar

from trainjob.kinds.facts import TABLE_FORMATS, ColumnFields, Facts
from trainjob.kinds.regressor import ERRORS, METRICS, SCALES_LOSSES, SCORES, Regressor
from trainjob.kinds.text_network import NOT_TUNED, TextNetwork
from trainjob.kinds.usage import TEXT_OPTION, TEXTS, Usage, usage_of_regressor


class TextRegressor(TextNetwork, Regressor):
    """A transformer encoder with dropout and a linear head: one number for each text, or several."""

    facts: ClassVar[Facts] = Facts(
        field="textRegressor",
        noun="regressor of texts",
        hub_task="text-classification",
        scores=SCORES,
        needs_dataset=True,
        formats=TABLE_FORMATS,
        columns=ColumnFields(
            allowed=("text", "textPair", "label", "labels", "cleaning"),
            required={
                ("text",): "is required by model.textRegressor: the columns that hold the text",
                ("label", "labels"): "is required by model.textRegressor: the column that holds the number",
            },
        ),
        metrics=METRICS,
        errors=ERRORS,
        scales_losses=SCALES_LOSSES,
        kind_for_classes="textClassifier",
        abilities=frozenset({"tuning", "sharding"}),
        usual_baselines=("mean", "tfidf"),
        reads_pairs=True,
        not_tuned=NOT_TUNED,
    )

    @property
    def description(self) -> str:
        if self.pretrained is None:
            return "Text regressor, encoder trained from scratch"
        return f"Text regressor on {self.pretrained}"

    @property
    def library(self) -> None:
        """transformers loads the network, whose output is the label in standard deviations from the mean."""
        return None

    def usage(self, uri: str) -> Usage:
        return usage_of_regressor(uri, TEXT_OPTION, TEXTS, "new.csv")

    @property
    def usual_learning_rate(self) -> float:
        return self.rate_of(self.pretrained, self.freeze_encoder)
