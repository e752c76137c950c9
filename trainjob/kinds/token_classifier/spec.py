"""`spec.model.tokenClassifier`."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.kinds.facts import SCRATCH_RATE, SPAN_FORMATS, ColumnFields, Direction, Facts
from trainjob.kinds.text_network import NOT_TUNED, TextNetwork
from trainjob.kinds.usage import Library, Usage, usage_of_predictor

METRICS: dict[str, Direction] = {
    "validation_loss": "min",
    "validation_precision": "max",
    "validation_recall": "max",
    "validation_f1": "max",
    "validation_partial_f1": "max",
    "train_loss": "min",
}
_FINE_TUNING_RATE = 5e-5


class TokenClassifier(TextNetwork):
    """A transformer encoder with dropout and a linear head: the spans of each text, such as names, each with a type."""

    max_length: Annotated[int, Field(ge=8, le=8192)] = 128
    """Maximum tokens of a window, special ones included. Longer texts are read in windows that overlap by half."""

    facts: ClassVar[Facts] = Facts(
        field="tokenClassifier",
        noun="classifier of tokens",
        hub_task="token-classification",
        scores=("trainjob.evaluation.scores.spans:SpanScores",),
        needs_dataset=True,
        formats=SPAN_FORMATS,
        columns=ColumnFields(
            allowed=("text", "label"),
            required={
                ("text",): "is required by model.tokenClassifier: the column that holds the text or its tokens",
                (
                    "label",
                ): "is required by model.tokenClassifier: the column that holds the spans, or a tag of each token",
            },
        ),
        metrics=METRICS,
        abilities=frozenset({"tuning"}),
        usual_baselines=("knownStrings",),
        not_tuned=NOT_TUNED,
    )

    @property
    def description(self) -> str:
        if self.pretrained is None:
            return "Token classifier, encoder trained from scratch"
        return f"Token classifier on {self.pretrained}"

    @property
    def worker_modules(self) -> list[str]:
        return ["trainjob.kinds.token_classifier.network"]

    @property
    def library(self) -> Library:
        code = 'from transformers import pipeline\n\nfind = pipeline("token-classification", model="FOLDER")'
        return Library("transformers", code)

    def usage(self, uri: str) -> Usage:
        (command, commands), (title, code) = usage_of_predictor(uri, '--text "…"', '["a text", "another"]', "new.jsonl")
        return [(command, commands), (title, code[: code.rindex("\n")].replace("classes =", "spans ="))]

    @property
    def usual_learning_rate(self) -> float:
        return SCRATCH_RATE if self.pretrained is None or self.freeze_encoder else _FINE_TUNING_RATE
