"""The attempts of a run: how often it was started, how often it failed, and since when each attempt has trained."""

import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from pydantic import AwareDatetime

from trainjob.errors import StorageError
from trainjob.redaction import without_secrets
from trainjob.runs.files import ATTEMPTS
from trainjob.runs.refusals import refuse_damaged
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder


class Attempts(StrictModel):
    """The number of starts and failures of a run, and the time of the first start."""

    started: AwareDatetime
    count: int
    failures: int = 0
    """Failures of the workers, and those of the driver that it survived to count."""
    training_since: list[float] = []
    """When each attempt at training a function began to train, in seconds since 1970."""
    failure: str = ""
    """The error that ended the latest attempt; empty where none did."""


def read_attempts(run: Folder) -> Attempts | None:
    """Returns None if the run has not started. Raises UserError for a damaged file."""
    if not run.exists(ATTEMPTS):
        return None
    with refuse_damaged(run, ATTEMPTS):
        return Attempts.model_validate_json(run.read(ATTEMPTS))


def write_attempts(run: Folder, attempts: Attempts) -> None:
    """Writes the run's attempts."""
    run.write(ATTEMPTS, attempts.model_dump_json(by_alias=True).encode())


def begin_training(run: Folder, attempts: Attempts) -> Attempts:
    """Keeps the time at which this attempt begins to train."""
    begun = attempts.model_copy(update={"training_since": [*attempts.training_since, time.time()]})
    write_attempts(run, begun)
    return begun


def count_failure(run: Folder) -> int:
    """Counts a failure and returns the number of failures so far. Raises StorageError."""
    attempts = read_attempts(run)
    if attempts is None:
        return 1
    counted = attempts.model_copy(update={"failures": attempts.failures + 1})
    write_attempts(run, counted)
    return counted.failures


@contextmanager
def keeping_failure(run: Folder) -> Generator[None]:
    """Keeps the error that ends the block in the run's attempts. An interruption does not count."""
    try:
        yield
    except Exception as error:
        with suppress(StorageError):  # which may be the error
            if attempts := read_attempts(run):
                words = str(error) or type(error).__name__
                write_attempts(run, attempts.model_copy(update={"failure": without_secrets(words)}))
        raise
