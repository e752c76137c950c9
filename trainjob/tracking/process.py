"""Starts the process that writes a run to its trackers, beside training."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from pydantic import ValidationError

from trainjob.api import TrainJob
from trainjob.api.training_status import TrackingStatus
from trainjob.doing import DOING
from trainjob.errors import Superseded, notify
from trainjob.runs.folder import to_dict
from trainjob.storage import Folder
from trainjob.tracking.follow import FINAL_SECONDS
from trainjob.tracking.tracker import STATUSES, EndState

LAST_SECONDS = FINAL_SECONDS + 30
INTERRUPTED_SECONDS = 3.0
"""After an interrupt, the process may not live long."""


@contextmanager
def tracking(run: Folder, job: TrainJob, on_status: Callable[[list[TrackingStatus]], None]) -> Generator[None]:
    """In the block, the run is written to the trackers of `spec.tracking`. Afterwards waits at most LAST_SECONDS for
    the rest."""
    if not job.spec.tracking:
        yield
        return
    arguments = [run.uri, *([run.endpoint] if run.endpoint else [])]
    process = subprocess.Popen(
        [sys.executable, "-m", "trainjob.tracking", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the driver, which tells how the run has ended
    )
    last: list[TrackingStatus] = []
    reader = threading.Thread(target=_read, args=(process, last, on_status), daemon=True)
    reader.start()
    _send(process, json.dumps(to_dict(job)))
    state, seconds = "stopped", INTERRUPTED_SECONDS
    try:
        yield
        state, seconds = "finished", LAST_SECONDS
    except Superseded:  # the run is another driver's
        seconds = 0
        raise
    except Exception:
        state, seconds = "failed", LAST_SECONDS
        raise
    finally:
        DOING.begin("writing to trackers")
        _end(process, state, seconds)
        reader.join(5)
        for status in last:
            if status.message and seconds == LAST_SECONDS:
                notify(f"{status.name} is behind ({status.message}): write the rest with `trainjob track {run.uri}`")


def _end(process: "subprocess.Popen[bytes]", state: EndState, seconds: float) -> None:
    if seconds:
        _send(process, state)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    process.kill()
    process.wait()
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


def _send(process: "subprocess.Popen[bytes]", line: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()


def _read(
    process: "subprocess.Popen[bytes]", last: list[TrackingStatus], on_status: Callable[[list[TrackingStatus]], None]
) -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            with suppress(ValidationError):
                last[:] = STATUSES.validate_json(line)
                on_status(list(last))
