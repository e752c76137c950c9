"""Proposes an image regressor for data of which nothing is known."""

from dataclasses import replace

from trainjob.kinds.image_classifier.propose import beside_images, proposal_of
from trainjob.kinds.look import Look, Proposal, Unsuitable


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without images, and where no column of a table has their numbers."""
    if look.has_images:
        raise Unsuitable("the data is not a table with an image and a number in each row")
    label, why = beside_images(look).number_label()
    proposal = proposal_of("imageRegressor", look, {"label": label}, why)
    return proposal if look.columns[label].classes is None else replace(proposal, fit=0)
