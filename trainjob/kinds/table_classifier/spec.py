"""`spec.model.tableClassifier`."""

from typing import ClassVar

from trainjob.kinds.classifier import METRICS, SCORES, Classifier
from trainjob.kinds.facts import TABLE_FORMATS, ColumnFields, Facts
from trainjob.kinds.table_network import NOT_TUNED, TableNetwork
from trainjob.kinds.usage import Usage, usage_of_predictor


class TableClassifier(TableNetwork, Classifier):
    """A network for tables: one label for each row."""

    facts: ClassVar[Facts] = Facts(
        field="tableClassifier",
        noun="classifier of tables",
        hub_task="tabular-classification",
        scores=SCORES,
        needs_dataset=True,
        formats=TABLE_FORMATS,
        columns=ColumnFields(
            allowed=("features", "columns", "label"),
            required={("label",): "is required by model.tableClassifier: the column that holds the label"},
        ),
        metrics=METRICS,
        abilities=frozenset({"tuning", "distillation", "compression"}),
        usual_baselines=("mostFrequent", "linear", "lightgbm"),
        not_tuned=NOT_TUNED,
        pretrained_part=("text",),
    )

    @property
    def description(self) -> str:
        return "Table classifier, TabM"

    def usage(self, uri: str) -> Usage:
        return usage_of_predictor(uri, "--row '{…}'", '[{"column": 1.5, "another": "value"}]', "new.csv")
