"""A client of the TrainJobs on a Kubernetes cluster. Only `client`, `connection` and `kubeconfig`
need the package kubernetes."""

from trainjob.cluster.errors import (
    ClusterError,
    ClusterUnreachable,
    JobFailed,
    JobTimeout,
    NoCluster,
    NoSuchJob,
    NotPermitted,
    NoTrainJobs,
    Refused,
)
from trainjob.cluster.job import ClusterJob

__all__ = [
    "ClusterError",
    "ClusterJob",
    "ClusterUnreachable",
    "JobFailed",
    "JobTimeout",
    "NoCluster",
    "NoSuchJob",
    "NoTrainJobs",
    "NotPermitted",
    "Refused",
]
