"""Errors that users can fix, shown as one message without a traceback, and notices."""

import warnings
from collections.abc import Sequence
from typing import ClassVar

from trainjob.redaction import without_secrets

_SHOWN = 5


class UserError(Exception):
    """An error that the author of the TrainJob can fix. The message says what is wrong, where, and what to do. It is
    shown, logged and written into the status, so secrets are removed from it."""

    exit_code: ClassVar[int] = 2
    """The exit code of a command that ends with this error."""

    def __init__(self, message: str) -> None:
        super().__init__(without_secrets(message))


class OutOfMemory(UserError):
    """A worker's GPU has too little memory for these settings."""


class Diverged(UserError):
    """A loss, gradient or metric is not finite."""


class TransientError(UserError):
    """An error that may not occur again, so a retry is worthwhile."""


class Superseded(UserError):
    """Another process has taken over the run; this one must not write anymore."""


class DataError(UserError):
    """The dataset cannot be used as it is; the message names the file and, if possible, the row."""


class RowError(DataError):
    """One row cannot be used; other rows of the file may be fine."""

    def __init__(
        self,
        message: str,
        location: str = "",
        kind: str = "",
        detail: str = "",
        cell: tuple[str, str] | None = None,
        advice: str = "",
    ) -> None:
        """`kind` describes the error without values of this row, so that errors can be counted; `detail` has the
        values. `cell` is the column and the problem, if only one cell is wrong. `advice` says what to do about all rows
        of the kind, if correcting each is not enough."""
        super().__init__(message)
        self.location, self.kind, self.detail, self.cell, self.advice = location, kind, detail, cell, advice


class StorageError(UserError):
    """The storage folder cannot be read or written."""


class StorageUnreachable(StorageError, TransientError):
    """The storage server does not answer, or cannot serve requests at the moment."""


def listed(names: Sequence[str], shown: int = _SHOWN) -> str:
    """The first names for a message, and the number of the others."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed. A user's mistake is permanent."""
    return not isinstance(error, UserError) or isinstance(error, TransientError)


class Notice(UserWarning):
    """Something that the user should know; the run continues."""


class Alarm(Notice):
    """A notice that casts doubt on the result."""


def notify(text: str, kind: type[Notice] = Notice) -> None:
    """Issues a Notice, once per text."""
    warnings.warn(without_secrets(text), kind, stacklevel=2)


DAMAGED = "is damaged, or from another version of trainjob"
RESTORE = "restore it from a copy, or train again (`trainjob run --fresh`)"
"""The advice for such a file of a run."""


def on_one_line(error: Exception) -> str:
    """The message of a parser's error, on one line."""
    text = " ".join(str(error).split())
    return f"it has no {text}" if isinstance(error, KeyError) else text
