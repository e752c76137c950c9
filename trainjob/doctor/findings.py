"""The finding of a check."""

from typing import Literal, NamedTuple

FindingState = Literal["ok", "wrong", "unknown"]


class Finding(NamedTuple):
    """The result of a check."""

    check: str
    state: FindingState
    message: str
    remedy: str = ""
    """A command or an action, if there is one."""


def ok(check: str, message: str) -> Finding:
    return Finding(check, "ok", message)


def wrong(check: str, message: str, remedy: str) -> Finding:
    return Finding(check, "wrong", message, remedy)


def unknown(check: str, message: str, remedy: str = "") -> Finding:
    """A finding on something that is not installed, cannot be seen, or may be right."""
    return Finding(check, "unknown", message, remedy)
