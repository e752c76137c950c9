"""The part of a kind's code that is the same for all models that predict numbers."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset
from trainjob.data.first_pass.survey import LabelReader
from trainjob.kinds.labelled_kind import LabelledKind
from trainjob.kinds.targets.one_or_several_numbers import NumberTarget, load_target, number_reader

if TYPE_CHECKING:
    from trainjob.kinds.look import Look, Proposal


class RegressorKind(LabelledKind):
    """A kind whose target is one number a row, or several. The class of its input comes after this one in the bases."""

    def label_reader(self, dataset: Dataset, spec: Any) -> LabelReader:
        return number_reader(dataset, str(self.label_column(dataset)))

    def load_target(self, state: dict[str, Any]) -> NumberTarget:
        return load_target(state)

    def propose(self, look: "Look") -> "Proposal":
        from trainjob.kinds.look import SURE, labels_of

        columns = self.beside_input(look)
        fields, why = columns.number_labels()
        found = self.proposal(look, fields, why)
        if columns.are_classes(labels_of(fields)):
            return replace(found, fit=0)
        return replace(found, fit=min(found.fit, 1)) if why and found.fit < SURE else found
