"""The table classifier: what `trainjob.kinds.kind.Kind` asks of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source, TableClassifier
from trainjob.data.first_pass.survey import FittedOn
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.inputs.table_fit import fit_table
from trainjob.kinds.kind import Kind
from trainjob.kinds.targets.class_labels import ClassLabels
from trainjob.kinds.targets.one_class import OneClass

if TYPE_CHECKING:
    from trainjob.models.classifier import Classifier


class TableClassifierKind:
    facts = TableClassifier.facts

    def label_column(self, dataset: Dataset) -> str | None:
        return dataset.label

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, self.facts.field)

    def fit(
        self,
        dataset: Dataset,
        model: TableClassifier,
        train: Sequence[SourcePart],
        seed: int,
        mapped: Mapper,
        bad: BadRows,
    ) -> FittedOn:
        return fit_table(dataset, ClassLabels(str(dataset.label)), train, seed, mapped, bad)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[TableInput, OneClass]:
        target = OneClass.load(state)
        return TableInput.load(state), target

    def build(self, spec: TableClassifier, table: TableInput, target: OneClass, as_stored: bool) -> "Classifier[Any]":
        from trainjob.kinds.table_classifier import network

        return network.build(spec, table, target)

    def load(self, folder: Path, table: TableInput) -> "Classifier[Any]":
        from trainjob.kinds.table_classifier import network

        return network.load(folder, table)

    def worker_modules(self, spec: TableClassifier) -> list[str]:
        return []


KIND: Kind = TableClassifierKind()
