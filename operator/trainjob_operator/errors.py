"""Errors that a TrainJob's status tells its user."""

from trainjob.api.cluster import KubernetesObject


class RayJobError(Exception):
    """The RayJob could not be created, or could not be updated to what the TrainJob asks for."""

    def __init__(self, reason: str, message: str, ray_job: KubernetesObject | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        """Why, in one word, as the condition Accepted has it."""
        self.ray_job = ray_job
        """The RayJob as it was written, where it is still not what the TrainJob asks for."""
