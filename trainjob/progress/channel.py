"""The connection on which rank 0 sends progress and output to the driver. Losing it never disturbs training."""

import json
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from secrets import token_bytes
from typing import Self

from trainjob.api.training_status import TrainingStatus
from trainjob.doing import DOING, ROWS
from trainjob.progress.snapshots import OnStatus
from trainjob.runs.trials import TrialSteps

MIN_INTERVAL_SECONDS = 0.2
DRAIN_SECONDS = 5.0
HANDSHAKE_SECONDS = 10.0
"""Time that a new connection has to prove that it knows the key."""
RECONNECT_SECONDS = 1.0
"""Pause of rank 0 before it reconnects."""
MAX_UNAUTHENTICATED = 64
"""Connections at once that have not yet proved the key."""
MAX_QUEUED = 1000
"""Messages that wait for the driver; when there are more, the oldest are dropped."""
_STATUS, _OUTPUT, _ROWS, _TRIAL, _END = b"s", b"o", b"r", b"t", b"e"
"""The first byte of a message. The driver answers the end, so that the sender knows that everything has arrived."""


@dataclass(frozen=True)
class Address:
    """The address that the driver listens on, and the shared key."""

    host: str
    port: int
    key: bytes


class ProgressReceiver:
    """The driver's end: calls `handle` with each snapshot and `show` with each line of output, on its own threads."""

    def __init__(
        self,
        handle: OnStatus,
        host: str = "127.0.0.1",
        show: Callable[[str], None] = lambda _: None,
        trial: Callable[[TrialSteps], None] = lambda _: None,
    ) -> None:
        """`trial` is called with the progress of each trial of a search. Rows that other processes prepare are counted
        in `DOING`."""
        key = token_bytes(32)
        self._handle, self._show, self._trial = handle, show, trial
        self._unauthenticated = threading.BoundedSemaphore(MAX_UNAUTHENTICATED)
        self._printing: set[threading.Thread] = set()
        self._listener = Listener((host, 0), backlog=MAX_UNAUTHENTICATED)
        self._closed = False
        self.address = Address(host, int(self._listener.address[1]), key)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for thread in list(self._printing):  # the worker has ended, so its connection ends after the last output
            thread.join(DRAIN_SECONDS)
        self._closed = True
        self._listener.close()

    def _accept(self) -> None:
        while True:
            self._unauthenticated.acquire()
            try:
                connection = self._listener.accept()
            except OSError:
                self._unauthenticated.release()
                if self._closed:
                    return
                continue
            threading.Thread(target=self._admit, args=(connection,), daemon=True).start()

    def _admit(self, connection: Connection) -> None:
        """Serves a client that proves it has the key. Each client has its own thread, so a silent one blocks nobody."""
        with connection:
            try:
                with _cut_off_after(HANDSHAKE_SECONDS, connection):
                    deliver_challenge(connection, self.address.key)
                    answer_challenge(connection, self.address.key)
            except Exception:  # an unknown client may send anything
                return
            finally:
                self._unauthenticated.release()
            self._receive(connection)

    def _receive(self, connection: Connection) -> None:
        while True:
            try:
                message = connection.recv_bytes()
            except (EOFError, OSError):
                return
            if message.startswith(_STATUS):
                self._handle(TrainingStatus.model_validate_json(message[1:]))
            elif message.startswith(_ROWS):
                if DOING.now.unit == ROWS:
                    DOING.add(int(message[1:]))
            elif message.startswith(_TRIAL):
                self._trial(TrialSteps(*json.loads(message[1:])))
            elif message == _END:
                with suppress(OSError):  # the sender no longer waits
                    connection.send_bytes(_END)
            else:
                self._printing.add(threading.current_thread())
                for line in message[1:].decode().split("\n"):
                    self._show(line)


class _Throttle:
    """Limits ordinary messages to one every MIN_INTERVAL_SECONDS."""

    def __init__(self) -> None:
        self._last = 0.0

    def admits(self, always: bool = False) -> bool:
        """Whether to send a message now: if it is `always` sent, or if none was sent a moment ago."""
        now = time.monotonic()
        if not always and now - self._last < MIN_INTERVAL_SECONDS:
            return False
        self._last = now
        return True


class Sender:
    """Rank 0's end: sends on its own thread, at most five ordinary snapshots a second, and reconnects when the
    connection is lost."""

    def __init__(self, address: Address) -> None:
        self._queue: deque[bytes] = deque(maxlen=MAX_QUEUED)
        self._changed, self._closing = threading.Condition(), False
        self._throttle = _Throttle()
        self._thread = threading.Thread(target=self._run, args=(address,), daemon=True)
        self._thread.start()

    def send(self, status: TrainingStatus, *, always: bool = False) -> None:
        """Sends a snapshot; drops it if another one was sent a moment ago, unless `always`."""
        if self._throttle.admits(always):
            self._add(_STATUS + status.model_dump_json(exclude_defaults=True, by_alias=True).encode())

    def send_rows(self, rows: int) -> None:
        """Reports that this many more rows are prepared."""
        self._add(_ROWS + str(rows).encode())

    def send_trial(self, steps: TrialSteps) -> None:
        """Reports the progress of a trial; drops the report if another one was sent a moment ago."""
        if self._throttle.admits():
            self._add(_TRIAL + json.dumps(steps).encode())

    def send_output(self, lines: str) -> None:
        """Sends one line, or several joined by newlines."""
        self._add(_OUTPUT + lines.encode())

    def close(self) -> None:
        """Sends the queue and waits a few seconds for the driver to receive it."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(DRAIN_SECONDS)

    def _add(self, message: bytes) -> None:
        with self._changed:
            self._queue.append(message)
            self._changed.notify()

    def _first(self) -> bytes | None:
        """Waits for the next message to send; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            return self._queue[0] if self._queue else None

    def _drop(self, sent: bytes) -> None:
        with self._changed:
            if self._queue and self._queue[0] is sent:  # it may have been dropped since
                self._queue.popleft()

    def _run(self, address: Address) -> None:
        is_last = False
        while not is_last:
            is_last = self._closing  # at the end, try only once
            with suppress(Exception), Client((address.host, address.port), authkey=address.key) as connection:
                self._send_all(connection)
                return
            with self._changed:
                self._changed.wait_for(lambda: self._closing, RECONNECT_SECONDS)

    def _send_all(self, connection: Connection) -> None:
        """Sends until the end. After an exception, unsent messages are still queued."""
        while (message := self._first()) is not None:
            if connection.poll():  # the driver sends nothing before the end, so it has closed the connection
                raise EOFError
            connection.send_bytes(message)
            self._drop(message)
        connection.send_bytes(_END)
        connection.poll(DRAIN_SECONDS)


@contextmanager
def _cut_off_after(seconds: float, connection: Connection) -> Generator[None]:
    """Closes the connection if the block takes longer, even while the other side keeps sending."""
    with socket.socket(fileno=os.dup(connection.fileno())) as own:

        def cut_off() -> None:
            with suppress(OSError):  # the other side has closed it
                own.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(seconds, cut_off)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


@dataclass(frozen=True)
class RowsTo:
    """Reports prepared rows to a driver, from any process. Picklable."""

    driver: Address

    def __call__(self, rows: int) -> None:
        _sender(self.driver).send_rows(rows)


@cache
def _sender(driver: Address) -> Sender:
    return Sender(driver)


def sender_to(driver: Address | OnStatus) -> "Sender | Direct":
    return Sender(driver) if isinstance(driver, Address) else Direct(driver)


class Direct:
    """Rank 0's end within the driver's process: passes snapshots on in the same thread, at most five a second unless
    `always`."""

    def __init__(self, handle: OnStatus) -> None:
        self._handle, self._throttle = handle, _Throttle()

    def send(self, status: TrainingStatus, *, always: bool = False) -> None:
        if self._throttle.admits(always):
            self._handle(status)

    def close(self) -> None:
        pass
