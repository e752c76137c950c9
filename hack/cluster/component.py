"""A server process that may be stopped, killed and started again."""

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
"""Before a command: it is killed once the thread that has started it ends, even if that is killed. Linux has it."""

START_SECONDS = 60
ENVIRONMENT = {"GOGC": "400"}
"""Go collects garbage a quarter as often: memory for time, of which an API server's start takes half as much."""

STOP_SECONDS = 5  # the API server would wait a minute for the watches that clients hold open

BLOCK_OF_PORTS = 200


@dataclass
class Component:
    """One program of a control plane; its name is that of its log file, which every start continues."""

    command: Sequence[str | Path]
    log: Path
    health_url: str
    certificate: Path | None = None  # what an https health_url is to be trusted by
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None, f"{self.log.stem} is not running"
        return self._process.pid

    def start(self, *flags: str) -> None:
        """Start with more flags than the usual ones, and wait until it serves."""
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
        """End it as the kubelet does: it is asked to, and killed when it takes too long."""
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
            self.kill()

    def kill(self) -> None:
        """End it as a crash does; nothing happens to one that does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def is_healthy(self) -> bool:
        """Whether it serves, whoever has started it."""
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
    """Ports that nothing uses, and that no other process of the tests is given; below those that outgoing connections
    get, so that they stay free while a server is down."""
    return list(islice(filter(_is_free, _own_ports()), count))


@cache
def _own_ports() -> Iterator[int]:
    """Each once. A process has a block of ports to itself, whose first one it binds for as long as it lives."""
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
