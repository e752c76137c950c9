"""The table regressor: what `trainjob.kinds.kind.Kind` asks of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import TableRegressor
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.table_kind import TableKind
from trainjob.kinds.targets.number import Number, NumberLabels

if TYPE_CHECKING:
    from trainjob.models.trainable import Trainable


class TableRegressorKind(TableKind):
    facts = TableRegressor.facts
    label_reader = NumberLabels
    target = Number

    def build(self, spec: TableRegressor, table: TableInput, target: Number, as_stored: bool) -> "Trainable[Any]":
        from trainjob.kinds.table_regressor import network

        return network.build(spec, table)

    def load(self, folder: Path, table: TableInput) -> "Trainable[Any]":
        from trainjob.kinds.table_regressor import network

        return network.load(folder, table)


KIND = TableRegressorKind()
