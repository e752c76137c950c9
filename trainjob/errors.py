"""Errors that users can fix, shown as one message and never as a traceback, and notices about a run that goes on."""

import warnings
from collections.abc import Sequence

from trainjob.redaction import without_secrets

_SHOWN = 5


class UserError(Exception):
    """What is wrong, where, and what to do about it, in words for the person who wrote the TrainJob. The message is
    shown, logged and written into the status, so secrets are removed from it."""

    def __init__(self, message: str) -> None:
        super().__init__(without_secrets(message))


class OutOfMemory(UserError):
    """A worker's GPU has too little memory for these settings."""


class Diverged(UserError):
    """A loss, gradient or metric is not finite."""


class TransientError(UserError):
    """An error that may be gone by the time the same is tried again."""


class Superseded(UserError):
    """Another process has taken over the run, and this one may write no more."""


class DataError(UserError):
    """The dataset cannot be used as it is; the message names the file and, where there is one, the row."""


class RowError(DataError):
    """One row cannot be used; others of its file may be."""

    def __init__(self, message: str, place: str = "", kind: str = "", detail: str = "") -> None:
        """`kind` is what is wrong without anything of this row's own, and `detail` is that."""
        super().__init__(message)
        self.place, self.kind, self.detail = place, kind, detail


class StorageError(UserError):
    """The storage folder cannot be read or written."""


class StorageUnreachable(StorageError, TransientError):
    """The storage's server does not answer, or is not able to at the moment."""


def listed(names: Sequence[str]) -> str:
    """The names, of many the first ones, as a message has them."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed. A mistake of the user's stays one."""
    return not isinstance(error, UserError) or isinstance(error, TransientError)


class Notice(UserWarning):
    """Something that the user should know, although the run goes on."""


class Alarm(Notice):
    """A notice that puts the result in doubt."""


def notify(text: str, kind: type[Notice] = Notice) -> None:
    """Gives a Notice, once for each text."""
    warnings.warn(without_secrets(text), kind, stacklevel=2)
