"""Loads preprocessors of all kinds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trainjob.errors import DataError
from trainjob.kinds import saved_kind
from trainjob.kinds.registry import load_kind

if TYPE_CHECKING:
    from trainjob.kinds.causal_lm.tokens import CausalPreprocessor
    from trainjob.kinds.inputs.image import ImagePreprocessor
    from trainjob.kinds.inputs.text import TextPreprocessor

PREPROCESSOR_FILE = "preprocessor.json"
Preprocessor: TypeAlias = "TextPreprocessor | ImagePreprocessor | CausalPreprocessor"


def load_preprocessor(folder: Path) -> Preprocessor:
    """What a preprocessor's `save` wrote. Raises DataError where `folder` holds none, or a damaged one."""
    file = folder / PREPROCESSOR_FILE
    if not file.is_file():
        raise DataError(f"{folder} holds no {PREPROCESSOR_FILE}: it is no model of trainjob's")
    try:
        state = json.loads(file.read_bytes())
        return load_kind(saved_kind(state["kind"])).load_preprocessor(folder, state)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file} is damaged: {type(error).__name__}: {error}") from error
