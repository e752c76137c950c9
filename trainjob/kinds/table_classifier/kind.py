"""The table classifier as a `trainjob.kinds.kind.Kind`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, TableClassifier
from trainjob.kinds.classifier_kind import ClassifierKind
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.table_kind import TableKind
from trainjob.kinds.targets.class_labels import ClassLabels
from trainjob.kinds.targets.class_or_labels import ClassTarget

if TYPE_CHECKING:
    from trainjob.models.classifier import TrainableClassifier


class TableClassifierKind(ClassifierKind, TableKind):
    facts = TableClassifier.facts

    def label_reader(self, dataset: Dataset, spec: TableClassifier) -> ClassLabels:
        return ClassLabels(str(dataset.label))

    def build(
        self, spec: TableClassifier, table: TableInput, target: ClassTarget, as_stored: bool
    ) -> "TrainableClassifier[Any]":
        from trainjob.kinds.table_classifier import network

        return network.build(spec, table, target.classes, as_stored)

    def load(self, folder: Path, table: TableInput) -> "TrainableClassifier[Any]":
        from trainjob.kinds.table_classifier import network

        return network.load(folder, table)


KIND = TableClassifierKind()
