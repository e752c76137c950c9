"""Proposes a text classifier for unknown data."""

from trainjob.kinds.inputs.proposed_texts import refuse_without_texts, text_proposal
from trainjob.kinds.look import Look, Proposal


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without texts, and where the label is not clear."""
    refuse_without_texts(look)
    if (several := look.several_labels()) is not None:
        return text_proposal("textClassifier", look, *several)
    label, why = look.label()
    return text_proposal("textClassifier", look, {"label": label}, why, table_kind="tableClassifier")
