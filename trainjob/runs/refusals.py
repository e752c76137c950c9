"""Errors about a run's folder, each with one wording."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import yaml
from pydantic import ValidationError

from trainjob.api.document import dotted
from trainjob.api.wording import problems_of
from trainjob.errors import DAMAGED, RESTORE, UserError, listed, on_one_line

if TYPE_CHECKING:
    from trainjob.storage import Folder


def not_a_run(folder: "Folder", expected: str) -> UserError:
    """The error for a folder that lacks the file `expected` of a run."""
    found = listed([name for name in folder.list() if not name.startswith(".")]) or "nothing"
    return UserError(f"{folder.uri} is not a run's folder: expected {expected} there, found {found}")


def damaged(folder: "Folder", name: str, problem: object) -> UserError:
    """The error for a file `name` of a run's folder that cannot be read."""
    return UserError(f"{folder.uri}/{name} {DAMAGED}: {problem}; {RESTORE}")


@contextmanager
def refuse_damaged(folder: "Folder", name: str) -> Generator[None]:
    """Turns a parse error inside the block into a UserError that names the file `name`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        is_empty = folder.exists(name) and not folder.read(name).strip()
        raise damaged(folder, name, "it is empty" if is_empty else _problem(error)) from error


def _problem(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return on_one_line(error)
    (path, message), *others = (found for each in error.errors() for found in problems_of(each))
    more = f" (and {len(others)} more)" if others else ""
    return f"{dotted(path)} {message}{more}".strip()
