"""Errors that a TrainJob's status tells its user."""


class RayJobError(Exception):
    """The RayJob could not be created, or could not be updated to what the TrainJob asks for."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        """Why, in one word, as the condition Accepted has it."""
