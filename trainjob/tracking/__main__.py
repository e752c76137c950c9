"""The process that writes a run to its trackers: `python -m trainjob.tracking RUN [ENDPOINT]`.

The driver sends the TrainJob as the first line of standard input and, at its end, a line with the State; if the driver
is killed, the input ends without one. Each change of status is a line of JSON on standard output.
"""

import json
import os
import select
import sys
from contextlib import suppress
from typing import get_args

from trainjob.api import TrainJob
from trainjob.api.training_status import TrackingStatus
from trainjob.storage import Folder
from trainjob.tracking.follow import follow
from trainjob.tracking.tracker import STATUSES, EndState


def main() -> None:
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what libraries print
    os.nice(10)
    uri, *endpoint = sys.argv[1:]
    job = TrainJob.model_validate(json.loads(sys.stdin.buffer.raw.readline()))  # pyrefly: ignore[missing-attribute]

    def ended(seconds: float) -> EndState | None:
        if not select.select([0], [], [], seconds)[0]:
            return None
        word = os.read(0, 100).decode().strip()
        return next((state for state in get_args(EndState) if state == word), "stopped")

    def tell(statuses: list[TrackingStatus]) -> None:
        with suppress(BrokenPipeError):  # the driver was killed
            output.write(STATUSES.dump_json(statuses) + b"\n")

    follow(Folder(uri, endpoint[0] if endpoint else None), job, ended, tell)


if __name__ == "__main__":
    main()
