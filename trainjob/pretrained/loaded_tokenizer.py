"""Loads a tokenizer with transformers and saves it as tokenizer.json.

`python -P -m trainjob.pretrained.loaded_tokenizer NAME FOLDER CACHED_ONLY` does so in a process of its own, without
PyTorch, which transformers imports where it can: 300 MiB that a driver would keep as long as it trains.
"""

import json
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple


class LoadedTokenizer(NamedTuple):
    """A tokenizer's properties, according to transformers."""

    problem: str | None
    """Why it cannot be used."""
    kind: str = ""
    """The name of its class."""
    input_names: list[str] = []
    """The names of the network's inputs."""


def save_loaded(name: str, folder: Path, cached_only: bool) -> LoadedTokenizer:
    """Saves in `folder` the tokenizer that AutoTokenizer loads for the model `name`: here if this process has imported
    transformers already, otherwise in another process."""
    if "transformers" in sys.modules:
        return _save_here(name, folder, cached_only)
    command = [sys.executable, "-P", "-m", __name__, name, str(folder), json.dumps(cached_only)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1]
        return LoadedTokenizer(f"has no usable tokenizer: the process that loads it has ended: {last}")
    return LoadedTokenizer(*json.loads(done.stdout))


def _save_here(name: str, folder: Path, cached_only: bool) -> LoadedTokenizer:
    from transformers.models.auto.tokenization_auto import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(name, local_files_only=cached_only, trust_remote_code=False)
    except Exception as error:  # damaged files make the library raise nearly anything
        return LoadedTokenizer(f"has no usable tokenizer: {' '.join(str(error).split())}")
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):  # what transformers makes of no files at all
        return LoadedTokenizer("has no tokenizer: save it there, too (tokenizer.json, or vocab.txt and others)")
    tokenizer.save_pretrained(folder)
    if not (folder / "tokenizer.json").is_file():
        return LoadedTokenizer("has no fast tokenizer (tokenizer.json)")
    return LoadedTokenizer(None, type(tokenizer).__name__, list(tokenizer.model_input_names))


def main() -> None:
    name, folder, cached_only = sys.argv[1:]
    sys.modules["torch"] = None  # pyrefly: ignore[unsupported-operation]  # transformers then takes it as not installed
    with redirect_stdout(sys.stderr):
        found = _save_here(name, Path(folder), json.loads(cached_only))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
