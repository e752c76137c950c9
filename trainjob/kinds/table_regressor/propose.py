"""Proposes a table regressor for data of which nothing is known."""

from dataclasses import replace

from trainjob.kinds.look import Look, Proposal, Unsuitable
from trainjob.kinds.table_classifier.propose import proposal_of, refuse_other_data


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without a table of numbers and categories, and where no column is clearly the number
    to predict."""
    refuse_other_data(look)
    label, why = look.number_label()
    if not set(look.columns) - {label, *look.texts}:
        raise Unsuitable(f'no column but "{label}" holds numbers or categories')
    proposal = proposal_of("tableRegressor", look, label, why)
    return proposal if look.columns[label].classes is None else replace(proposal, fit=0)
