"""A server process that can be stopped, killed and restarted."""

import atexit
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

ENDS_WITH_US = ["setpriv", "--pdeathsig=KILL"] if shutil.which("setpriv") else []
"""Command prefix: the process is killed when the thread that started it ends, even by a kill. Linux only."""

START_SECONDS = 60
ENVIRONMENT = {"GOGC": "400"}
"""Go collects garbage a quarter as often: more memory, but an API server starts in half the time."""

STOP_SECONDS = 5  # the API server would wait a minute for the watches that clients hold open

BLOCK_OF_PORTS = 200


@dataclass
class Component:
    """A program of a control plane, named like its log file, to which every start appends."""

    command: Sequence[str | Path]
    log: Path
    health_url: str
    certificate: Path | None = None  # what an https health_url is to be trusted by
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        """PID of the running process."""
        assert self._process is not None, f"{self.log.stem} is not running"
        return self._process.pid

    def start(self, *flags: str) -> None:
        """Start with additional flags, and wait until it serves."""
        assert self._process is None, f"{self.log.stem} is running"
        with open(self.log, "ab") as log:  # a session of its own: Ctrl-C is for the tests, which then stop it
            self._process = subprocess.Popen(
                [*self.command, *flags],
                env=os.environ | ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.is_healthy():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.log.stem} did not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it like the kubelet: terminate it, and kill it if it takes too long."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
            self.kill()

    def kill(self) -> None:
        """Kill it like a crash; no effect if it is not running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def is_healthy(self) -> bool:
        """Whether it serves, regardless of who started it."""
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        try:
            if self.health_url.startswith("https"):
                context = ssl.create_default_context(cafile=self.certificate)
                handlers.append(urllib.request.HTTPSHandler(context=context))
            with urllib.request.build_opener(*handlers).open(self.health_url, timeout=5):
                return True
        except OSError:
            return False


def free_ports(count: int) -> list[int]:
    """Ports that are unused and reserved for this test process, below the ephemeral range, so that they stay free while
    a server is down."""
    return list(islice(filter(_is_free, _own_ports()), count))


@cache
def _own_ports() -> Iterator[int]:
    """Yields each port once. A process reserves a block of ports by binding its first one for its lifetime."""
    for first in range(20_000, 32_000, BLOCK_OF_PORTS):
        guard = socket.socket()
        try:
            guard.bind(("127.0.0.1", first))
        except OSError:
            guard.close()
            continue
        atexit.register(guard.close)
        yield from range(first + 1, first + BLOCK_OF_PORTS)


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) != 0
