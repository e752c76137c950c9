"""Keeps the trackers of a run up to date until it ends. Retries a tracker that fails, without delaying the others."""

import os
import time
from collections.abc import Callable

from trainjob.api import TrainJob
from trainjob.api.tracking import Tracker as Settings
from trainjob.api.training_status import TrackingStatus
from trainjob.redaction import without_secrets
from trainjob.storage import Folder
from trainjob.tracking.registry import open_tracker
from trainjob.tracking.sync import Sync
from trainjob.tracking.tracker import EndState

INTERVAL_SECONDS = 5.0
MAX_PAUSE_SECONDS = 60.0
FINAL_SECONDS = 15.0
"""How long to try after the run has ended."""
MAX_MESSAGE_CHARACTERS = 500


class RunTracking:
    """A run in one tracker. Its methods never raise."""

    def __init__(self, run: Folder, job: TrainJob, settings: Settings) -> None:
        self._run, self._job, self._settings = run, job, settings
        self._sync: Sync | None = None
        self._failures, self._next = 0, 0.0
        self.status = TrackingStatus(name=settings.name)

    @property
    def is_behind(self) -> bool:
        return bool(self.status.message)

    def write(self, state: EndState | None) -> None:
        """Writes new records, unless the last attempt has just failed. `state` is the run's final state; None while it
        is in progress."""
        if state is None and time.monotonic() < self._next:
            return
        message, url = "", self.status.url
        try:
            if self._sync is None:
                tracker = open_tracker(self._settings, self._job.metadata.name)
                self._sync = Sync(self._run, self._job, self._settings.name, tracker)
            self._sync.write(state)
            url, self._failures = self._sync.url, 0
        except Exception as error:  # of any client library
            message = _one_line(error, self._settings)
            if self._sync is not None:
                url, self._sync = self._sync.url, None  # the next attempt opens the tracker again
            pause = min(INTERVAL_SECONDS * 2**self._failures, MAX_PAUSE_SECONDS)
            self._failures, self._next = min(self._failures + 1, 10), time.monotonic() + pause
        self.status = TrackingStatus(name=self._settings.name, url=url, message=message)


def follow(
    run: Folder,
    job: TrainJob,
    ended: Callable[[float], EndState | None],
    on_status: Callable[[list[TrackingStatus]], None],
) -> None:
    """Follows a run. `ended` waits up to a number of seconds for the run's end and returns how it has ended."""
    trackers, last, state, deadline = [RunTracking(run, job, each) for each in job.spec.tracking], None, None, 0.0
    while True:
        for tracker in trackers:
            tracker.write(state)
        if (now := [tracker.status for tracker in trackers]) != last:
            on_status(now)
            last = now
        if state is not None:
            if not any(tracker.is_behind for tracker in trackers) or time.monotonic() > deadline:
                return
            time.sleep(1)
        elif (state := ended(INTERVAL_SECONDS)) is not None:
            deadline = time.monotonic() + FINAL_SECONDS


def _one_line(error: Exception, settings: Settings) -> str:
    """An error in one line without credentials."""
    text = without_secrets(" ".join(str(error).split()) or type(error).__name__)
    for name in settings.secret[1]:
        if secret := os.environ.get(name):
            text = text.replace(secret, "<hidden>")
    return text[:MAX_MESSAGE_CHARACTERS]
