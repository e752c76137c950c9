"""Proposes a table regressor for unknown data."""

from dataclasses import replace

from trainjob.errors import listed
from trainjob.kinds.look import Look, Proposal, Unsuitable, labels_of
from trainjob.kinds.table_classifier.propose import proposal_of, refuse_other_data


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without a table of numbers and categories, and where no column is clearly the number
    to predict."""
    refuse_other_data(look)
    fields, why = look.number_labels()
    labels = labels_of(fields)
    if not set(look.columns) - {*labels, *look.texts}:
        raise Unsuitable(f"no column but {listed(labels)} holds numbers or categories")
    proposal = proposal_of("tableRegressor", look, fields, why)
    return replace(proposal, fit=0) if look.are_classes(labels) else proposal
