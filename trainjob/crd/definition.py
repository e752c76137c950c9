"""The CustomResourceDefinition (CRD) of the TrainJob."""

from typing import Any

from trainjob.api.names import GROUP, KIND, PLURAL, VERSION
from trainjob.api.training_status import TrainingStatus
from trainjob.api.trainjob import TrainJob, TrainJobSpec
from trainjob.api.trainjob_status import TrainJobStatus
from trainjob.crd.kubernetes_types import Schema
from trainjob.crd.schema import class_description, report_schema, spec_schema, status_schema


def crd() -> dict[str, Any]:
    """The CRD, as an object for the API server."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["tj"],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _COLUMNS,
                    "schema": {"openAPIV3Schema": trainjob_schema()},
                }
            ],
        },
    }


UNSEEN = {"observedGeneration": -1}
"""The status of a TrainJob that the operator has not seen: kstatus takes an object without any for a finished one."""


def trainjob_schema(defaults_everywhere: bool = False) -> Schema:
    """The structural schema of a TrainJob in a cluster; with `defaults_everywhere`, also with the defaults that the API
    server does not fill in."""
    status = status_schema(TrainJobStatus)
    training = status["properties"]["training"]
    # Managed as one value: to keep account of thousands of keys would take the API server seconds.
    training |= {"properties": report_schema(TrainingStatus)["properties"], "x-kubernetes-map-type": "atomic"}
    return {
        "type": "object",
        "description": class_description(TrainJob),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Version of this type."},
            "kind": {"type": "string", "description": "Always TrainJob."},
            "metadata": {"type": "object"},
            "spec": spec_schema(TrainJobSpec, defaults_everywhere),
            "status": status | {"default": UNSEEN},
        },
    }


def _column(name: str, path: str, kind: str = "string", *, wide: bool = False) -> dict[str, Any]:
    """A column of `kubectl get tj` or, if `wide`, of `kubectl get tj -o wide`."""
    return {"name": name, "type": kind, "jsonPath": path, "priority": int(wide)}


_COLUMNS = [
    _column("Phase", ".status.phase"),
    _column("Reason", ".status.reason"),
    _column("Percent", ".status.training.percent", "integer"),  # kubectl prints a number with six decimals
    _column("Workers", ".status.workers.ready", "integer"),
    _column("Attempt", ".status.attempt", "integer"),
    _column("Trials", ".status.training.tuning.ended", wide=True),
    _column("Message", ".status.message", wide=True),
    _column("Age", ".metadata.creationTimestamp", "date"),
]
