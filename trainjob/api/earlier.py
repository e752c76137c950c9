"""TrainJobs that earlier versions completed, as this version writes them."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from trainjob.api.document import value_at
from trainjob.kinds import KINDS
from trainjob.kinds.classifier import SEVERAL_LABELS_LOSS


def as_written_now(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A TrainJob that a cluster or a run's folder has kept.

    `loss: {crossEntropy: {}}` was the default of every classifier, so that API servers and runs have it beside
    `dataset.labels`, too, although such models were trained with binaryCrossEntropy.
    """
    for kind in KINDS:
        path = ("spec", "model", kind, "loss")
        if value_at(document, path) == {"crossEntropy": {}} and value_at(document, ("spec", "dataset", "labels")):
            changed: Any = deepcopy(document)
            value_at(changed, path[:-1])["loss"] = SEVERAL_LABELS_LOSS.model_dump(by_alias=True, exclude_none=True)
            return changed
    return document
