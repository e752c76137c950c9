"""Ensures that only the driver that started last, and the workers that it started last, write into a run's folder.

The cluster may replace a driver that it cannot reach but that still trains and reaches the storage. Each driver
therefore writes a claim, a file whose name has an increasing number, and before each change checks that its claim is
still the latest. A driver may likewise start workers again while earlier ones still train on a node that it cannot
reach, so workers also have a claim among those of all workers. This only requires listings that include all earlier
writes, which local disks, S3 and gs:// provide.
"""

import re
import socket
from dataclasses import dataclass, replace
from uuid import uuid4

from trainjob.errors import StorageUnreachable, Superseded, TransientError, UserError
from trainjob.runs.files import CLAIMS, LAUNCHES
from trainjob.runs.folder import wait_for_file
from trainjob.storage import Folder

_CLAIM = re.compile(r"\d{8}-[0-9a-f]{8}")
"""An increasing number, and random digits that distinguish two processes that start at the same time."""


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
        earlier = _claims(self._run, CLAIMS)
        self._claim = _write_claim(self._run, CLAIMS, earlier)
        self.check(self._run)
        for name in earlier:
            (self._run / CLAIMS).delete(name)

    def check(self, _: Folder) -> None:
        """Raises Superseded if another process owns the folder, and UserError if the folder no longer exists.

        Does nothing before `claim` is called."""
        if self._claim and max(wait_for_file(self._run, CLAIMS, lambda: _claims(self._run, CLAIMS))) != self._claim:
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


def claim_for_workers(run: Folder) -> str:
    """Takes over the folder from earlier workers, in the name of those that begin now. Returns the claim, for
    `held_by_workers`."""
    earlier = _claims(run, LAUNCHES)
    claim = _write_claim(run, LAUNCHES, earlier)
    for name in earlier:
        (run / LAUNCHES).delete(name)
    return claim


def held_by_workers(run: Folder, claim: str) -> Folder:
    """The folder for the workers with this claim. Every change raises TransientError once later workers have claimed
    it, and whatever `run` raises."""
    return replace(run, before_change=_WorkersClaim(run, claim).check)


@dataclass(frozen=True)
class _WorkersClaim:
    """The claim of workers to a run's folder. Picklable."""

    run: Folder
    claim: str

    def check(self, folder: Folder) -> None:
        """A listing that is too old to have this claim refuses nothing."""
        self.run.before_change(folder)
        if max(_claims(self.run, LAUNCHES), default="") > self.claim:
            raise TransientError(
                f"{self.run.uri}: other workers have been started in the place of these, which stop without changing "
                "anything else"
            )


def _write_claim(run: Folder, kind: str, earlier: list[str]) -> str:
    """Writes a claim that follows all `earlier` ones, and returns its name."""
    number = int(max(earlier, default="0").partition("-")[0]) + 1
    claim = f"{number:08d}-{uuid4().hex[:8]}"
    (run / kind).write(claim, f"{socket.gethostname()}\n".encode())
    return claim


def _claims(run: Folder, kind: str) -> list[str]:
    return [name for name in run.list(kind) if _CLAIM.fullmatch(name)]
