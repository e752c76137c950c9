"""Proposes an image regressor for data of which nothing is known."""

from dataclasses import replace

from trainjob.kinds.image_classifier.propose import label_of, proposal_of
from trainjob.kinds.look import Look, Proposal, Unsuitable


def propose(look: Look, label: str | None) -> Proposal:
    """Raises Unsuitable for data without images, and where no column of a table has their numbers."""
    column = look.columns.get(label_of(look, label) or "")
    if column is None or not column.is_number:
        raise Unsuitable("the data is not a table with an image and a number in each row")
    proposal = proposal_of("imageRegressor", look, label)
    return proposal if column.classes is None else replace(proposal, fit=0)
