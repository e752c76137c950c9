"""The driver's side of the process that local workers are forked from."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from trainjob import interrupts
from trainjob.launch.fast.fork_server import POLL_SECONDS, WorkerGroup
from trainjob.launch.fast.ray_worker import FORK_ENVIRONMENT


class ServerDied(Exception):
    """The process that workers are forked from has died."""

    def __init__(self, code: int, log: str) -> None:
        super().__init__(code, log)
        self.code, self.log = code, log


class ForkServer:
    """A process that imports `modules` as soon as it is started, and that workers are then forked from."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str], log_file: Path) -> None:
        """`environment` is added to this process's environment; the server's output goes to `log_file`."""
        self._modules, self._environment = modules, environment
        self._log = log_file.open("w+b")
        self._server = self._start()

    def run(self, group: WorkerGroup) -> list[int | None]:
        """Starts the workers, waits for them to end and returns their exit codes in order of rank: see `fork_server`.

        Raises ServerDied, after another server has been started for the next call.
        """
        requests, answers = cast("IO[bytes]", self._server.stdin), cast("IO[bytes]", self._server.stdout)
        with suppress(BrokenPipeError):
            requests.write(group.to_json() + b"\n")
        while (code := self._server.poll()) is None:
            interrupts.check()
            if select.select([answers], [], [], POLL_SECONDS)[0] and (line := answers.readline()):
                return json.loads(line)
        self._kill()
        self._log.seek(0)
        log = self._log.read().decode(errors="replace")
        self._log.truncate(0)
        self._server = self._start()
        raise ServerDied(code, log)

    def close(self) -> None:
        """Ends the server and the workers, and waits until they are gone."""
        self._kill()
        self._log.close()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "trainjob.launch.fast.fork_server", *self._modules],
            env={**os.environ, **FORK_ENVIRONMENT, **self._environment},
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is the driver's to handle
        )

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)
        cast("IO[bytes]", self._server.stdin).close()
        with cast("IO[bytes]", self._server.stdout) as answers:
            answers.read()  # ends once the last process has ended
        self._server.wait()
