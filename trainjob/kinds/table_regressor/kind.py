"""The table regressor: what `trainjob.kinds.kind.Kind` asks of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TableRegressor
from trainjob.data.first_pass.survey import FittedOn
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.inputs.table_fit import fit_table
from trainjob.kinds.kind import Kind
from trainjob.kinds.targets.number import Number, NumberLabels

if TYPE_CHECKING:
    from trainjob.models.trainable import Trainable


class TableRegressorKind:
    facts = TableRegressor.facts

    def label_column(self, dataset: Dataset) -> str | None:
        return dataset.label

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, self.facts.field)

    def fit(
        self,
        dataset: Dataset,
        model: TableRegressor,
        train: Sequence[SourcePart],
        seed: int,
        mapped: Mapper,
        bad: BadRows,
    ) -> FittedOn:
        return fit_table(dataset, NumberLabels(str(dataset.label)), train, seed, mapped, bad)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[TableInput, Number]:
        target = Number.load(state)
        return TableInput.load(state), target

    def build(self, spec: TableRegressor, table: TableInput, target: Number, as_stored: bool) -> "Trainable[Any]":
        from trainjob.kinds.table_regressor import network

        return network.build(spec, table)

    def load(self, folder: Path, table: TableInput) -> "Trainable[Any]":
        from trainjob.kinds.table_regressor import network

        return network.load(folder, table)

    def worker_modules(self, spec: TableRegressor) -> list[str]:
        return []


KIND: Kind = TableRegressorKind()
