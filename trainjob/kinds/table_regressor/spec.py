"""`spec.model.tableRegressor`."""

from typing import ClassVar

from trainjob.kinds.facts import TABLE_FORMATS, ColumnFields, Facts
from trainjob.kinds.regressor import ERRORS, METRICS, SCALES_LOSSES, SCORES, Regressor
from trainjob.kinds.table_network import NOT_TUNED, TableNetwork
from trainjob.kinds.usage import Usage, usage_of_regressor


class TableRegressor(TableNetwork, Regressor):
    """A network for tables: one number for each row, or several."""

    facts: ClassVar[Facts] = Facts(
        field="tableRegressor",
        noun="regressor of tables",
        hub_task="tabular-regression",
        scores=SCORES,
        needs_dataset=True,
        formats=TABLE_FORMATS,
        columns=ColumnFields(
            allowed=("features", "columns", "label", "labels"),
            required={("label", "labels"): "is required by model.tableRegressor: the column that holds the number"},
        ),
        metrics=METRICS,
        errors=ERRORS,
        scales_losses=SCALES_LOSSES,
        kind_for_classes="tableClassifier",
        abilities=frozenset({"tuning"}),
        usual_baselines=("mean", "linear", "lightgbm"),
        not_tuned=NOT_TUNED,
        pretrained_part=("text",),
    )

    @property
    def description(self) -> str:
        return "Table regressor, TabM"

    def usage(self, uri: str) -> Usage:
        return usage_of_regressor(uri, "--row '{…}'", '[{"column": 1.5, "another": "value"}]', "new.csv")
