"""Proposes an image classifier for unknown data."""

from trainjob.kinds.inputs.proposed_images import beside_images, image_proposal
from trainjob.kinds.look import Look, Proposal


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without images, and where a column has the number of each image."""
    if look.has_images:
        return image_proposal("imageClassifier", look, {})
    table = beside_images(look)
    if (several := table.several_labels()) is not None:
        return image_proposal("imageClassifier", look, *several)
    label, why = table.label()
    return image_proposal("imageClassifier", look, {"label": label}, why)
