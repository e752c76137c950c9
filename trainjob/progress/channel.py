"""The line on which rank 0 tells the driver how training goes and what it prints. Losing it never disturbs training."""

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
from trainjob.runs.trials import TrialSteps

MIN_SECONDS_BETWEEN = 0.2
SECONDS_FOR_THE_REST = 5.0
HANDSHAKE_SECONDS = 10.0
"""How long who has connected may take to show the key."""
SECONDS_BETWEEN_CONNECTIONS = 1.0
"""How long rank 0 waits before it tries to connect again."""
MOST_STRANGERS = 64
"""At once: connections that have not yet shown the key."""
MOST_WAITING = 1000
"""Messages that a driver has yet to take: of more, the latest are kept."""
_STATUS, _OUTPUT, _ROWS, _TRIAL, _END = b"s", b"o", b"r", b"t", b"e"
"""The first byte of a message; the end is answered, so that the sender knows that all before it was taken."""


@dataclass(frozen=True)
class Address:
    """Where the driver listens, and the key that both sides must know."""

    host: str
    port: int
    key: bytes


Handle = Callable[[TrainingStatus], None]


class Receiver:
    """The driver's end: calls `handle` with each snapshot and `show` with each line of output, on threads of its
    own."""

    def __init__(
        self,
        handle: Handle,
        host: str = "127.0.0.1",
        show: Callable[[str], None] = lambda _: None,
        trial: Callable[[TrialSteps], None] = lambda _: None,
    ) -> None:
        """`trial` is called with how far a trial of a search has come. Rows that others prepare are counted in
        `DOING`."""
        key = token_bytes(32)
        self._handle, self._show, self._trial = handle, show, trial
        self._strangers = threading.BoundedSemaphore(MOST_STRANGERS)
        self._printing: set[threading.Thread] = set()
        self._listener = Listener((host, 0), backlog=MOST_STRANGERS)
        self._closed = False
        self.address = Address(host, int(self._listener.address[1]), key)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for thread in list(self._printing):  # its worker has ended, so the line ends with the last output
            thread.join(SECONDS_FOR_THE_REST)
        self._closed = True
        self._listener.close()

    def _accept(self) -> None:
        while True:
            self._strangers.acquire()
            try:
                connection = self._listener.accept()
            except OSError:
                self._strangers.release()
                if self._closed:
                    return
                continue
            threading.Thread(target=self._admit, args=(connection,), daemon=True).start()

    def _admit(self, connection: Connection) -> None:
        """Receives from who has the key. Who says nothing holds up nobody else."""
        with connection:
            try:
                with _cut_off_after(HANDSHAKE_SECONDS, connection):
                    deliver_challenge(connection, self.address.key)
                    answer_challenge(connection, self.address.key)
            except Exception:  # a stranger, who may send anything
                return
            finally:
                self._strangers.release()
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
                with suppress(OSError):  # it does not wait any more
                    connection.send_bytes(_END)
            else:
                self._printing.add(threading.current_thread())
                self._show(message[1:].decode())


class Sender:
    """Rank 0's end: sends on a thread of its own; of most snapshots, at most five a second. Where the line is lost, it
    connects again."""

    def __init__(self, address: Address) -> None:
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._changed, self._closing = threading.Condition(), False
        self._last = 0.0
        self._thread = threading.Thread(target=self._run, args=(address,), daemon=True)
        self._thread.start()

    def send(self, status: TrainingStatus, *, always: bool = False) -> None:
        """Sends a snapshot, unless one was sent a moment ago and this one is not `always` to be sent."""
        now = time.monotonic()
        if always or now - self._last >= MIN_SECONDS_BETWEEN:
            self._last = now
            self._add(_STATUS + status.model_dump_json(exclude_defaults=True, by_alias=True).encode())

    def send_rows(self, rows: int) -> None:
        """Tells that so many more rows are prepared."""
        self._add(_ROWS + str(rows).encode())

    def send_trial(self, steps: TrialSteps) -> None:
        """Tells how far a trial has come, unless that was told a moment ago."""
        now = time.monotonic()
        if now - self._last >= MIN_SECONDS_BETWEEN:
            self._last = now
            self._add(_TRIAL + json.dumps(steps).encode())

    def send_output(self, line: str) -> None:
        self._add(_OUTPUT + line.encode())

    def close(self) -> None:
        """Sends what is left and waits until the driver has taken it, for some seconds at most."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(SECONDS_FOR_THE_REST)

    def _add(self, message: bytes) -> None:
        with self._changed:
            self._waiting.append(message)
            self._changed.notify()

    def _first(self) -> bytes | None:
        """The message to send next, once there is one; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return self._waiting[0] if self._waiting else None

    def _drop(self, sent: bytes) -> None:
        with self._changed:
            if self._waiting and self._waiting[0] is sent:  # there may have been too many since
                self._waiting.popleft()

    def _run(self, address: Address) -> None:
        is_last = False
        while not is_last:
            is_last = self._closing  # then, who cannot be reached is not waited for
            with suppress(Exception), Client((address.host, address.port), authkey=address.key) as connection:
                self._send_all(connection)
                return
            with self._changed:
                self._changed.wait_for(lambda: self._closing, SECONDS_BETWEEN_CONNECTIONS)

    def _send_all(self, connection: Connection) -> None:
        """Sends until the end. What could not be sent before an exception is still waiting then."""
        while (message := self._first()) is not None:
            if connection.poll():  # the driver says nothing before the end: it has closed the line
                raise EOFError
            connection.send_bytes(message)
            self._drop(message)
        connection.send_bytes(_END)
        connection.poll(SECONDS_FOR_THE_REST)


@contextmanager
def _cut_off_after(seconds: float, connection: Connection) -> Generator[None]:
    """Ends the connection where the block takes longer, however busily the other side talks."""
    with socket.socket(fileno=os.dup(connection.fileno())) as own:

        def cut_off() -> None:
            with suppress(OSError):  # the other side was quicker
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
    """Tells a driver, from any process, of more rows."""

    driver: Address

    def __call__(self, rows: int) -> None:
        _sender(self.driver).send_rows(rows)


@cache
def _sender(driver: Address) -> Sender:
    return Sender(driver)


def sender_to(driver: Address | Handle) -> "Sender | Direct":
    return Sender(driver) if isinstance(driver, Address) else Direct(driver)


class Direct:
    """Rank 0's end where the driver is the same process: hands over what is always to be sent, and
    others now and then, in the same thread."""

    def __init__(self, handle: Handle) -> None:
        self._handle, self._last = handle, 0.0

    def send(self, status: TrainingStatus, *, always: bool = False) -> None:
        now = time.monotonic()
        if always or now - self._last >= MIN_SECONDS_BETWEEN:
            self._last = now
            self._handle(status)

    def close(self) -> None:
        pass
