"""A client of the TrainJobs on a Kubernetes cluster."""

from trainjob.cluster.client import Client
from trainjob.cluster.connection import connect
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
    "Client",
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
    "connect",
]
