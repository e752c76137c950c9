"""Proposes a table classifier for unknown data."""

from trainjob.kinds.inputs.proposed_tables import refuse_other_data, table_proposal
from trainjob.kinds.look import Look, Proposal


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without a table, and where the label is not clear."""
    refuse_other_data(look)
    label, why = look.label()
    return table_proposal("tableClassifier", look, {"label": label}, why)
