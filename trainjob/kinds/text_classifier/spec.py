"""`spec.model.textClassifier`."""

from typing import ClassVar

from trainjob.kinds.classifier import LABEL_METRICS, METRICS, SCORES_OF_LABELS, Classifier
from trainjob.kinds.facts import TABLE_FORMATS, ColumnFields, Facts
from trainjob.kinds.text_network import TextNetwork
from trainjob.kinds.usage import TEXT_OPTION, TEXTS, Library, Usage, usage_of_predictor


class TextClassifier(TextNetwork, Classifier):
    """A transformer encoder with dropout and a linear head: one label for each text."""

    facts: ClassVar[Facts] = Facts(
        field="textClassifier",
        noun="classifier of texts",
        hub_task="text-classification",
        scores=SCORES_OF_LABELS,
        takes_several_labels=True,
        needs_dataset=True,
        formats=TABLE_FORMATS,
        columns=ColumnFields(
            allowed=("text", "textPair", "label", "labels", "cleaning"),
            required={
                ("text",): "is required by model.textClassifier: the columns that hold the text",
                ("label", "labels"): "is required by model.textClassifier: the column that holds the label",
            },
        ),
        metrics=METRICS | LABEL_METRICS,
        abilities=frozenset({"tuning", "distillation", "sharding", "compression", "pruning"}),
        usual_baselines=("mostFrequent", "tfidf"),
        other_baselines=("languageModel",),
        reads_pairs=True,
        not_tuned=("maxLength", "encoder.vocabularySize", "freezeEncoder"),
        earlier_names=("text",),
    )

    @property
    def description(self) -> str:
        if self.pretrained is None:
            return "Text classifier, encoder trained from scratch"
        return f"Text classifier on {self.pretrained}"

    @property
    def library(self) -> Library:
        code = 'from transformers import pipeline\n\nclassify = pipeline("text-classification", model="FOLDER")'
        return Library("transformers", code, joins_columns=True)

    def usage(self, uri: str) -> Usage:
        return usage_of_predictor(uri, TEXT_OPTION, TEXTS, "new.csv")

    @property
    def usual_learning_rate(self) -> float:
        return self.rate_of(self.pretrained, self.freeze_encoder)
