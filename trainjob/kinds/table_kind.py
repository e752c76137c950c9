"""The part of a kind's code that is the same for all models that answer a row of a table."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source
from trainjob.data.first_pass.survey import FittedOn, LabelReader
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.label_lists import label_column
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.facts import Facts
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.inputs.table_fit import fit_table
from trainjob.kinds.kind import Kind

if TYPE_CHECKING:
    from trainjob.models.trainable import Trainable


class TableKind(Kind):
    """A kind that joins the columns of a table and a target. A subclass reads the labels and has the network."""

    facts: Facts

    def label_column(self, dataset: Dataset) -> str | None:
        return label_column(dataset)

    @abstractmethod
    def label_reader(self, dataset: Dataset) -> LabelReader:
        """Reads the labels of the training rows."""

    @abstractmethod
    def load_target(self, state: dict[str, Any]) -> Any:
        """The target that was saved with these fields of preprocessor.json."""

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, labelled, self.facts.field)

    def fit(
        self,
        dataset: Dataset,
        model: Any,
        train: Sequence[SourcePart],
        seed: int,
        mapped: Mapper,
        bad: BadRows,
    ) -> FittedOn:
        return fit_table(dataset, model, self.label_reader(dataset), train, seed, mapped, bad)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[TableInput, Any]:
        target = self.load_target(state)
        return TableInput.load(folder, state), target

    @abstractmethod
    def build(self, spec: Any, table: TableInput, target: Any, as_stored: bool) -> "Trainable[Any]": ...

    @abstractmethod
    def load(self, folder: Path, table: TableInput) -> "Trainable[Any]": ...

    def worker_modules(self, spec: Any) -> list[str]:
        modules = [type(self).__module__.removesuffix("kind") + "network"]
        return modules if spec.text is None else [*modules, "trainjob.kinds.table_encoder"]
