"""The common code of all kinds that read rows of tables."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset, Source
from trainjob.data.first_pass.survey import FittedOn
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.label_lists import label_column
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.inputs.table_fit import fit_table
from trainjob.kinds.labelled_kind import LabelledKind

if TYPE_CHECKING:
    from trainjob.kinds.data_preview import DataPreview, Proposal
    from trainjob.models.trainable import Trainable


class TableKind(LabelledKind):
    """A kind that joins the columns of a table and a target. A subclass reads the labels and has the network."""

    def label_column(self, dataset: Dataset) -> str | None:
        return label_column(dataset)

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        return table_parts(source, endpoint, labelled, self.facts.field)

    def fit(
        self,
        dataset: Dataset,
        model: Any,
        train: Sequence[SourcePart],
        seed: int,
        mapper: Mapper,
        bad: BadRows,
    ) -> FittedOn:
        return fit_table(dataset, model, self.label_reader(dataset, model), train, seed, mapper, bad)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[TableInput, Any]:
        target = self.load_target(state)
        return TableInput.load(folder, state), target

    @abstractmethod
    def build(self, spec: Any, table: TableInput, target: Any, as_stored: bool) -> "Trainable[Any]": ...

    @abstractmethod
    def load(self, folder: Path, table: TableInput) -> "Trainable[Any]": ...

    def label_candidates(self, preview: "DataPreview") -> "DataPreview":
        from trainjob.kinds.inputs.proposed_tables import refuse_other_data

        refuse_other_data(preview)
        return preview

    def proposal(self, preview: "DataPreview", fields: Mapping[str, Any], why: str) -> "Proposal":
        from trainjob.kinds.data_preview import labels_of
        from trainjob.kinds.inputs.proposed_tables import refuse_labels_alone, table_proposal

        refuse_labels_alone(preview, labels_of(fields))
        return table_proposal(self.facts.field, preview, fields, why)
