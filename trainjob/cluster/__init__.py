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
from trainjob.cluster.job import Job

__all__ = [
    "ClusterError",
    "ClusterUnreachable",
    "Job",
    "JobFailed",
    "JobTimeout",
    "NoCluster",
    "NoSuchJob",
    "NoTrainJobs",
    "NotPermitted",
    "Refused",
]
