"""The part of a kind's code that is the same for all models that answer a row of a table."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trainjob.api import Dataset, Source
from trainjob.data.first_pass.survey import FittedOn, LabelReader
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.facts import Facts
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.inputs.table_fit import fit_table
from trainjob.kinds.kind import Kind

if TYPE_CHECKING:
    from trainjob.models.trainable import Trainable


class TableKind(Kind):
    """A kind that joins the columns of a table and a target. A subclass names the target and has the network."""

    facts: Facts
    label_reader: ClassVar[type[Any]]
    """A LabelReader, which takes the column's name."""
    target: ClassVar[type[Any]]
    """The Target, which `load` reads."""

    def label_column(self, dataset: Dataset) -> str | None:
        return dataset.label

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, self.facts.field)

    def fit(
        self,
        dataset: Dataset,
        model: Any,
        train: Sequence[SourcePart],
        seed: int,
        mapped: Mapper,
        bad: BadRows,
    ) -> FittedOn:
        labels: LabelReader = self.label_reader(str(dataset.label))
        return fit_table(dataset, labels, train, seed, mapped, bad)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[TableInput, Any]:
        target = self.target.load(state)
        return TableInput.load(state), target

    @abstractmethod
    def build(self, spec: Any, table: TableInput, target: Any, as_stored: bool) -> "Trainable[Any]": ...

    @abstractmethod
    def load(self, folder: Path, table: TableInput) -> "Trainable[Any]": ...

    def worker_modules(self, spec: Any) -> list[str]:
        return [type(self).__module__.removesuffix("kind") + "network"]
