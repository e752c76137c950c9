"""Ensures that only the driver that started last writes into a run's folder.

The cluster may replace a driver that it cannot reach but that still trains and reaches the storage. Each driver
therefore writes a claim, a file whose name has an increasing number, and before each change checks that its claim is
still the latest. This only requires listings that include all earlier writes, which local disks, S3 and gs:// provide.
"""

import re
import socket
from dataclasses import replace
from uuid import uuid4

from trainjob.errors import StorageUnreachable, Superseded, UserError
from trainjob.runs.files import CLAIMS
from trainjob.runs.folder import wait_for_file
from trainjob.storage import Folder

_CLAIM = re.compile(r"\d{8}-[0-9a-f]{8}")
"""An increasing number, and random digits that distinguish two drivers that start at the same time."""


class Owner:
    """This process's claim to a run's folder. Picklable: workers write on behalf of their driver."""

    def __init__(self, run: Folder) -> None:
        self._run, self._claim = run, ""

    @property
    def run(self) -> Folder:
        """The run's folder. Every change raises Superseded once another process has claimed the folder."""
        return replace(self._run, before_change=self.check)

    def claim(self) -> None:
        """Takes over the folder from any earlier owner."""
        earlier = _claims(self._run)
        number = int(max(earlier, default="0").partition("-")[0]) + 1
        claim = f"{number:08d}-{uuid4().hex[:8]}"
        (self._run / CLAIMS).write(claim, f"{socket.gethostname()}\n".encode())
        self._claim = claim
        self.check(self._run)
        for name in earlier:
            (self._run / CLAIMS).delete(name)

    def check(self, _: Folder) -> None:
        """Raises Superseded if another process owns the folder, and UserError if the folder no longer exists.

        Does nothing before `claim` is called."""
        if self._claim and max(wait_for_file(self._run, CLAIMS, lambda: _claims(self._run))) != self._claim:
            raise Superseded(
                f"{self._run.uri}: another process has taken over this run, so this one stops without changing "
                "anything else"
            )

    def cause_of(self, error: Exception) -> Exception:
        """The cause of `error`: Superseded if another process now owns the folder, otherwise `error` itself.

        A new owner may have deleted or replaced a file that this process was about to read."""
        if isinstance(error, StorageUnreachable):
            return error
        try:
            self.check(self._run)
        except Superseded as superseded:
            return superseded
        except UserError:  # the folder or its storage is gone: `error` is more specific
            pass
        return error


def _claims(run: Folder) -> list[str]:
    return [name for name in run.list(CLAIMS) if _CLAIM.fullmatch(name)]
