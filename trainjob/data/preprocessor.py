"""The preprocessor of a model: the input that turns rows into arrays, and the target that reads labels."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainjob.errors import DAMAGED, RESTORE, DataError, on_one_line
from trainjob.kinds import saved_kind
from trainjob.kinds.input import Input
from trainjob.kinds.registry import load_kind
from trainjob.kinds.target import Target

PREPROCESSOR_FILE = "preprocessor.json"


@dataclass(frozen=True)
class Preprocessor:
    """The input and the target of a model, fitted on the training rows. Picklable."""

    kind: str
    """The field of `spec.model`."""
    input: Input
    target: Target

    def save(self, folder: Path) -> None:
        """Writes preprocessor.json and the files of the input."""
        state = {"kind": self.kind, **self.target.save(), **self.input.save(folder)}
        (folder / PREPROCESSOR_FILE).write_text(json.dumps(state, indent=1))


def load_preprocessor(folder: Path) -> Preprocessor:
    """Loads a saved preprocessor. Raises DataError if `folder` has none, or a damaged one."""
    file = folder / PREPROCESSOR_FILE
    if not file.is_file():
        raise DataError(f"{folder} has no {PREPROCESSOR_FILE}: it is not a trainjob model")
    with saved_json(file) as state:
        name = state.pop("kind")
        kind = saved_kind(name)
        return Preprocessor(kind, *load_kind(kind).load_fitted(folder, state, name))


@contextmanager
def saved_json(file: Path) -> Generator[Any]:
    """The content of a file of a run or model. Raises DataError if it is damaged, also if the block that reads the
    content raises an error."""
    try:
        yield json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError) as error:
        is_empty = file.is_file() and not file.stat().st_size
        problem = "it is empty" if is_empty else on_one_line(error) if file.is_file() else "it is missing"
        raise DataError(f"{file} {DAMAGED}: {problem}; {RESTORE}") from error
