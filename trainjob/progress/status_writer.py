"""Writes progress into the TrainJob's `status.training` without disturbing training."""

import json
import logging
import math
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPException
from itertools import islice
from typing import Any, Literal

from trainjob.api import TrainJob
from trainjob.api.numbers import finite
from trainjob.api.resources import TRAIN_JOBS
from trainjob.api.training_status import MAX_ENTRIES, MAX_KEY_CHARACTERS, MAX_TEXT_CHARACTERS, TrainingStatus
from trainjob.progress.api_server import ApiServer, Operation, RequestRefused

MANAGER = "trainjob-trainer"
"""Field manager of `status.training`."""

INTERVAL_SECONDS = 2.0
MAX_PAUSE_SECONDS = 30.0
FINAL_SECONDS = 60.0
"""How long to retry the last snapshot, even if it is refused: an operator that has just taken over may not have written
`status.headPodUID` yet, and a starting API server does not know all roles."""
_DECIMALS = {"percent": 1, "eta": 0}
"""Decimals of these fields; other numbers have six significant digits."""

WriteResult = Literal["written", "gone", "refused", "away"]
"""The result of writing a snapshot. After "gone", nothing can be written any more."""

logger = logging.getLogger("trainjob.progress")


@contextmanager
def reporting(job: TrainJob) -> Generator["StatusReporter | None"]:
    """Yields a reporter, and writes its last snapshot at the end of the block. Yields None outside the TrainJob's
    cluster."""
    server = ApiServer.of_this_pod()
    if server is None or job.metadata.namespace is None or job.metadata.uid is None:
        yield None
        return
    reporter = StatusReporter(server, job)
    try:
        yield reporter
    finally:
        reporter.close()


class StatusReporter:
    """Writes the newest snapshot, on its own thread."""

    def __init__(self, server: ApiServer, job: TrainJob) -> None:
        self._server, self._metadata = server, job.metadata
        self.retries = job.spec.retries
        """`spec.retries` in the API server's last answer; users may change it while training runs."""
        self._changed = threading.Condition()
        self._newest: TrainingStatus | None = None
        self._closing = False
        self._last_warning = ""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def update(self, status: TrainingStatus) -> None:
        """Replaces the snapshot that will be written next."""
        with self._changed:
            self._newest = status
            self._changed.notify()

    def close(self) -> None:
        """Writes the last snapshot, or gives up after FINAL_SECONDS."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(FINAL_SECONDS)
        if self._thread.is_alive():
            self._warn(f"the final report was not written within {FINAL_SECONDS:.0f} seconds: {self._last_warning}")

    def _run(self) -> None:
        before, times = "written", 0
        while (status := self._take()) is not None:
            result = self._write(status)
            before, times = result, times + 1 if result == before else 1
            closing = self._closing
            pause = pause_after(result, times, closing)
            if pause is None:
                return
            with self._changed:
                if result != "written" and self._newest is None:
                    self._newest = status
                self._changed.wait_for(lambda closing=closing: self._closing != closing, pause)

    def _take(self) -> TrainingStatus | None:
        """Waits for a new snapshot; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._closing)
            status, self._newest = self._newest, None
            return status

    def _write(self, status: TrainingStatus) -> WriteResult:
        job = self._metadata
        # Server-side apply would ignore the UID when it writes a status.
        operations: list[Operation] = [
            {"op": "test", "path": "/metadata/uid", "value": job.uid},
            {"op": "add", "path": "/status/training", "value": as_json(status, datetime.now(UTC))},
        ]
        path = TRAIN_JOBS.path(job.namespace, f"{job.name}/status")
        try:
            body = self._server.patch(path, operations, MANAGER)
        except RequestRefused as refusal:
            result = result_of(refusal)
            self._warn(_MESSAGES[result].format(refusal))
            return result
        except (OSError, HTTPException) as error:
            self._warn(_MESSAGES["away"].format(f"{type(error).__name__}: {error}"))
            return "away"
        self._last_warning = ""
        self.retries = retries_in(body, self.retries)
        return "written"

    def _warn(self, text: str) -> None:
        """Logs a warning, unless it repeats the last one."""
        if text != self._last_warning:
            self._last_warning = text
            logger.warning("TrainJob %s/%s: %s", self._metadata.namespace, self._metadata.name, text)


_MESSAGES: dict[WriteResult, str] = {
    "gone": "it was deleted, so its status is no longer written ({})",
    "refused": (
        "status.training may not be written; check that the chart's role and policy for progress reports are "
        "installed, and that this is still the same TrainJob ({})"
    ),
    "away": "the API server does not answer; status.training is written once it does ({})",
}


def result_of(refusal: RequestRefused) -> WriteResult:
    """Whether writing again may help after a refusal."""
    match refusal.status:
        case 404:
            return "gone"
        case 400 | 403 | 422:  # 422 also if the UID differs or there is no status yet
            return "refused"
        case _:
            return "away"


def pause_after(result: WriteResult, times: int, closing: bool) -> float | None:
    """Seconds until the next write after the same result `times` times in a row; None to stop writing."""
    if result == "gone":
        return None
    if closing:
        return 0.0 if result == "written" else INTERVAL_SECONDS
    if result == "written":
        return INTERVAL_SECONDS
    return min(INTERVAL_SECONDS * 2 ** min(times, 10), MAX_PAUSE_SECONDS)


def retries_in(answer: bytes, before: int) -> int:
    """`spec.retries` of a TrainJob in JSON; `before` if it cannot be read."""
    try:
        return int(json.loads(answer)["spec"]["retries"])
    except (ValueError, KeyError, TypeError):  # a proxy answered, not the API server
        return before


def as_json(status: TrainingStatus, at: datetime) -> dict[str, Any]:
    """A snapshot as JSON with its time: texts and maps cut to their limits, no NaN or infinity."""
    stamped = status.model_copy(update={"metrics": finite(status.metrics), "updated_time": at.replace(microsecond=0)})
    return _plain(stamped.model_dump(mode="json", by_alias=True, exclude_none=True))


def _plain(value: Any, name: str = "") -> Any:
    """The value of the field `name` without empty values, with rounded numbers, and with texts and maps cut to their
    limits."""
    match value:
        case dict():
            has_users_names = name in ("metrics", "evaluation")
            plain = {
                key[:MAX_KEY_CHARACTERS]: _plain(item, "" if has_users_names else key) for key, item in value.items()
            }
            return dict(
                islice(((key, item) for key, item in plain.items() if item not in (None, "", {}, [])), MAX_ENTRIES)
            )
        case list():
            return [_plain(item) for item in value]
        case float():
            rounded = round(value, _DECIMALS[name]) if name in _DECIMALS else float(f"{value:.6g}")
            return rounded if math.isfinite(value) else None
        case str():
            text = value[-MAX_TEXT_CHARACTERS:] if name == "traceback" else value[:MAX_TEXT_CHARACTERS]
            return text.encode(errors="replace").decode()
        case _:
            return value
