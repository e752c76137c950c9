"""Errors of requests to a cluster; each message says what to do."""

from typing import ClassVar

from trainjob.errors import TransientError, UserError


class ClusterError(UserError):
    """A request to a cluster failed."""

    exit_code: ClassVar[int] = 1
    """The same exit code as kubectl's."""


class NoCluster(ClusterError):
    """There is no usable kubeconfig."""


class ClusterUnreachable(ClusterError, TransientError):
    """The API server does not answer, or cannot serve requests at the moment."""


class Silent(ClusterUnreachable):
    """The API server has sent nothing for a while. It may hang, or have nothing to send."""


class NoTrainJobs(ClusterError):
    """The cluster does not know TrainJobs, or only those of another version."""


class NotPermitted(ClusterError):
    """The user lacks a permission, or is not known to the cluster."""


class NoSuchJob(ClusterError):
    """There is no TrainJob of this name."""


class JobFailed(ClusterError):
    """A TrainJob that was waited for has failed."""


class JobTimeout(ClusterError):
    """A TrainJob that was waited for has not ended in time."""


class Refused(ClusterError):
    """The API server refused a request; the message is the server's."""
