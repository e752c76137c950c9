"""Errors about a run's folder, each with one wording."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import yaml

from trainjob.errors import UserError, listed

if TYPE_CHECKING:
    from trainjob.storage import Folder


def not_a_run(folder: "Folder", expected: str) -> UserError:
    """The error for a folder that lacks the file `expected` of a run."""
    found = listed([name for name in folder.list() if not name.startswith(".")]) or "nothing"
    return UserError(f"{folder.uri} is not a run's folder: expected {expected} there, found {found}")


def damaged(folder: "Folder", name: str, problem: object) -> UserError:
    """The error for a file `name` of a run's folder that cannot be read."""
    return UserError(f"{folder.uri}/{name} is damaged, or from another version of trainjob: {problem}")


@contextmanager
def refuse_damaged(folder: "Folder", name: str) -> Generator[None]:
    """Turns a parse error inside the block into a UserError that names the file `name`."""
    try:
        yield
    except (TypeError, ValueError, yaml.YAMLError) as error:
        raise damaged(folder, name, error) from error
