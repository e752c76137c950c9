"""The table regressor as a `trainjob.kinds.kind.Kind`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TableRegressor
from trainjob.data.read.label_lists import with_labels
from trainjob.data.read.numbers import with_numbers
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.regressor_kind import RegressorKind
from trainjob.kinds.table_kind import TableKind
from trainjob.kinds.targets.one_or_several_numbers import NumberTarget

if TYPE_CHECKING:
    from trainjob.models.trainable import Trainable


class TableRegressorKind(RegressorKind, TableKind):
    facts = TableRegressor.facts

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return with_labels(dataset, super().parts(dataset, source, endpoint, labelled), with_numbers)

    def build(self, spec: TableRegressor, table: TableInput, target: NumberTarget, as_stored: bool) -> "Trainable[Any]":
        from trainjob.kinds.table_regressor import network

        return network.build(spec, table, target.width, as_stored)

    def load(self, folder: Path, table: TableInput) -> "Trainable[Any]":
        from trainjob.kinds.table_regressor import network

        return network.load(folder, table)


KIND = TableRegressorKind()
