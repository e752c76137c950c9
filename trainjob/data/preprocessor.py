"""The preprocessor of a model: the input that turns rows into arrays, and the target that reads labels."""

import json
from dataclasses import dataclass
from pathlib import Path

from trainjob.errors import DataError
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
    try:
        state = json.loads(file.read_bytes())
        name = state.pop("kind")
        kind = saved_kind(name)
        return Preprocessor(kind, *load_kind(kind).load_fitted(folder, state, name))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file} is damaged: {type(error).__name__}: {error}") from error
