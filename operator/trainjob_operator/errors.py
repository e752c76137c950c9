"""Errors that are reported in a TrainJob's status."""

from trainjob.api.cluster import KubernetesObject


class RayJobError(Exception):
    """The RayJob could not be created, or does not match the TrainJob."""

    def __init__(self, reason: str, message: str, ray_job: KubernetesObject | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        """The reason of the condition Accepted, in CamelCase."""
        self.ray_job = ray_job
        """The RayJob as the API server returned it, if it differs from the one that was written."""
