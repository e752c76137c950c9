"""Which process writes into a run's folder: of several that take themselves for its driver, the last to start.

A driver that is cut off from the cluster, but not from the storage, is replaced while it still trains. Every driver
therefore lays a claim, a file whose name says its turn, and looks before each change whether it is still the last. This
needs nothing of a storage but that a listing has what was written before, so it is the same for disks, S3 and gs://.
"""

import re
import socket
from dataclasses import replace
from uuid import uuid4

from trainjob.errors import StorageUnreachable, Superseded, UserError
from trainjob.runs.files import CLAIMS
from trainjob.runs.folder import look_again
from trainjob.storage import Folder

_CLAIM = re.compile(r"\d{8}-[0-9a-f]{8}")
"""The turn, and something that sets apart those of two drivers that start at once."""


class Owner:
    """This process's claim to a run's folder. Picklable: workers write in the name of their driver."""

    def __init__(self, run: Folder) -> None:
        self._run, self._claim = run, ""

    @property
    def run(self) -> Folder:
        """The folder. What would change it raises Superseded once another process has claimed it."""
        return replace(self._run, before_change=self.check)

    def claim(self) -> None:
        """From now on this process owns the folder, and whoever owned it before does no more."""
        earlier = _claims(self._run)
        turn = int(max(earlier, default="0").partition("-")[0]) + 1
        claim = f"{turn:08d}-{uuid4().hex[:8]}"
        (self._run / CLAIMS).write(claim, f"{socket.gethostname()}\n".encode())
        self._claim = claim
        self.check(self._run)
        for name in earlier:
            (self._run / CLAIMS).delete(name)

    def check(self, _: Folder) -> None:
        """Raises Superseded where another process owns the folder, and UserError where it is no longer there; before
        the claim, neither."""
        if self._claim and max(look_again(self._run, CLAIMS, lambda: _claims(self._run))) != self._claim:
            raise Superseded(
                f"{self._run.uri}: another process has taken up this run since, so this one ends and changes nothing "
                "more"
            )

    def cause_of(self, error: Exception) -> Exception:
        """Why this process has failed: Superseded where another one owns the folder by now, which may have deleted or
        replaced what this one was about to read; `error` otherwise."""
        if isinstance(error, StorageUnreachable):
            return error
        try:
            self.check(self._run)
        except Superseded as superseded:
            return superseded
        except UserError:  # the folder is gone, or its storage: `error` says as much, or something else
            pass
        return error


def _claims(run: Folder) -> list[str]:
    return [name for name in run.list(CLAIMS) if _CLAIM.fullmatch(name)]
