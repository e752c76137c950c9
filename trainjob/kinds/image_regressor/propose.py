"""Proposes an image regressor for unknown data."""

from dataclasses import replace

from trainjob.kinds.image_classifier.propose import beside_images, proposal_of
from trainjob.kinds.look import Look, Proposal, Unsuitable, labels_of


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without images, and where no column of a table has their numbers."""
    if look.has_images:
        raise Unsuitable("the data is not a table with an image and a number in each row")
    fields, why = beside_images(look).number_labels()
    proposal = proposal_of("imageRegressor", look, fields, why)
    return replace(proposal, fit=0) if look.are_classes(labels_of(fields)) else proposal
