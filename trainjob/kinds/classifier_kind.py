"""The common code of all kinds that predict classes."""

from typing import TYPE_CHECKING, Any

from trainjob.kinds.labelled_kind import LabelledKind
from trainjob.kinds.targets.class_or_labels import ClassTarget, load_target

if TYPE_CHECKING:
    from trainjob.kinds.data_preview import DataPreview, Proposal


class ClassifierKind(LabelledKind):
    """A kind whose target is one class a row, or any number of labels. The class of its input comes after this one in
    the bases."""

    def load_target(self, state: dict[str, Any]) -> ClassTarget:
        return load_target(state)

    def propose(self, preview: "DataPreview") -> "Proposal":
        """Raises Unsuitable for data without its input, and where the label is not clear."""
        columns = self.label_candidates(preview)
        several = columns.several_labels() if self.facts.takes_several_labels else None
        if several is not None:
            return self.proposal(preview, *several)
        label, why = columns.label()
        return self.proposal(preview, {"label": label}, why)
