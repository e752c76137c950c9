"""SIGINT and SIGTERM end a command with one KeyboardInterrupt; neither is ever lost.

Python drops an exception that a signal raises inside a finalizer, and the main thread does not wake up for a signal
that another thread has received. So the handler also remembers the signal, and every long wait of the main thread polls
`check`.
"""

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from types import FrameType
from typing import NoReturn, TypeVar

_Value = TypeVar("_Value")

POLL_SECONDS = 0.2

_handled = False
_received: signal.Signals | None = None


def handle_signals() -> None:
    """Installs the handler. Call on the main thread. Ignored signals stay ignored, such as SIGINT of a background
    process in a shell script."""
    global _handled
    _handled = True
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _receive)


def are_handled() -> bool:
    return _handled


def handle_again() -> None:
    """Reinstalls the handler, if there was one, after a library has replaced it."""
    if _handled and threading.current_thread() is threading.main_thread():
        handle_signals()


def received() -> signal.Signals | None:
    """The first signal that this process has received."""
    return _received


def exit_code() -> int:
    """The exit code after an interrupt: 128 plus the signal number, as in shells."""
    return 128 + (_received or signal.SIGINT)


def check() -> None:
    """Raises KeyboardInterrupt if a signal has been received. Not for code that cleans up after an interrupt."""
    if _received is not None:
        raise KeyboardInterrupt


def result_of(future: "Future[_Value]") -> _Value:
    """Waits for a future's result. Raises KeyboardInterrupt once a signal has been received."""
    while not future.done():
        check()
        wait([future], POLL_SECONDS)
    return future.result()


def wait_for_signal() -> NoReturn:
    """Waits until a signal is received, and raises KeyboardInterrupt."""
    while True:
        check()
        time.sleep(POLL_SECONDS)


def _receive(number: int, _: FrameType | None) -> None:
    global _received
    is_first, _received = _received is None, _received or signal.Signals(number)
    if is_first or number == signal.SIGINT:  # SIGTERM may arrive twice: sent to the shell and to its process group
        raise KeyboardInterrupt


def in_thread(work: Callable[[], _Value]) -> "Future[_Value]":
    """Calls `work` off the main thread, where libraries such as Ray would handle Ctrl-C themselves."""
    future: Future[_Value] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
