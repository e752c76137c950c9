"""`spec.model.tableClassifier`."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.kinds.classifier import METRICS, SCORES, Classifier
from trainjob.kinds.facts import TABLES, Columns, Facts
from trainjob.kinds.usage import Usage, usage_of_predictor
from trainjob.schema.base import StrictModel
from trainjob.schema.fields import PositiveInt

TABM_RATE = 2e-3
"""The learning rate that TabM's authors recommend."""


class TabM(StrictModel):
    """TabM (Gorishniy et al., 2024): an ensemble of networks that share most of their weights, on piecewise-linear
    embeddings of numbers."""

    members: Annotated[int, Field(ge=1, le=256)] = 32
    """Networks of the ensemble."""
    blocks: Annotated[int, Field(ge=1, le=64)] = 2
    """Hidden layers of each network."""
    hidden_size: PositiveInt = 256
    """Width of each hidden layer."""
    embedding_size: PositiveInt = 16
    """Width of the embedding of each number."""


class TableClassifier(Classifier):
    """A network for tables: one label for each row."""

    choices: ClassVar[tuple[str, ...]] = ("tabm",)
    facts: ClassVar[Facts] = Facts(
        field="tableClassifier",
        noun="classifier of tables",
        hub_task="tabular-classification",
        scores=SCORES,
        needs_dataset=True,
        formats=TABLES,
        columns=Columns(
            allowed=("features", "columns", "label"),
            required={("label",): "is required by model.tableClassifier: the column that holds the label"},
        ),
        metrics=METRICS,
        abilities=frozenset({"tuning", "distillation", "compression"}),
        usual_baselines=("mostFrequent", "linear", "lightgbm"),
    )

    tabm: TabM | None = None
    """An ensemble of small networks."""

    @property
    def description(self) -> str:
        return "Table classifier, TabM"

    @property
    def library(self) -> None:
        return None

    def usage(self, uri: str) -> Usage:
        return usage_of_predictor(uri, "--row '{…}'", '[{"column": 1.5, "another": "value"}]', "new.csv")

    @property
    def usual_learning_rate(self) -> float:
        return TABM_RATE
