"""Names in the cluster that the operator and its clients share."""

from pathlib import Path

GROUP, VERSION, KIND, PLURAL = "trainjob.dev", "v1alpha1", "TrainJob", "trainjobs"
"""A TrainJob's type in Kubernetes."""
OPERATOR = f"{GROUP}/operator"
"""Value of `spec.managedBy` of TrainJobs that the operator is to reconcile; the default."""
UID_LABEL = f"{GROUP}/uid"
"""On a RayJob and its pods: the TrainJob's UID."""
SUBMITTER_CONTAINER = "ray-job-submitter"
"""Container of the submitter pod, which submits the entry point and prints the driver's log."""
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder of the service account's token in a pod, with the cluster's certificate and the pod's namespace."""


def run_name(name: str, uid: str | None) -> str:
    """Name of a run's folder in its storage: on a laptop a TrainJob has no UID."""
    return name if uid is None else f"{name[:200]}-{uid[:8]}"
