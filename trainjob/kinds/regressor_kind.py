"""The common code of all kinds that predict numbers."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset
from trainjob.data.first_pass.survey import LabelReader
from trainjob.kinds.labelled_kind import LabelledKind
from trainjob.kinds.targets.one_or_several_numbers import NumberTarget, load_target, number_reader

if TYPE_CHECKING:
    from trainjob.kinds.data_preview import DataPreview, Proposal


class RegressorKind(LabelledKind):
    """A kind whose target is one number a row, or several. The class of its input comes after this one in the bases."""

    def label_reader(self, dataset: Dataset, spec: Any) -> LabelReader:
        return number_reader(dataset, str(self.label_column(dataset)))

    def load_target(self, state: dict[str, Any]) -> NumberTarget:
        return load_target(state)

    def propose(self, preview: "DataPreview") -> "Proposal":
        from trainjob.kinds.data_preview import SURE, labels_of

        columns = self.label_candidates(preview)
        fields, why = columns.number_labels()
        found = self.proposal(preview, fields, why)
        if columns.are_classes(labels_of(fields)):
            return replace(found, confidence=0)
        return replace(found, confidence=min(found.confidence, 1)) if why and found.confidence < SURE else found
