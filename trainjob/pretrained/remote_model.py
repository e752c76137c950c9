"""Pretrained models on S3 and Google Cloud Storage: copied once per machine."""

import fcntl
import hashlib
import os
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from trainjob.api import Model, TrainJobSpec
from trainjob.errors import DataError, UserError
from trainjob.storage import Folder

_WEIGHTS = re.compile(r".*\.(safetensors|bin|pth?|ckpt|h5|msgpack|onnx|gguf|tflite|npz)")
_SOURCE = ".uri"
"""Suffix of the file that records the source of a copy."""
_TORCH_WEIGHTS = re.compile(r"pytorch_model.*\.bin")


@contextmanager
def local_model(spec: TrainJobSpec, weights: bool) -> Generator[Model]:
    """The spec's model. If it is pretrained and on s3:// or gs://, the URI is replaced with the folder of a local copy,
    which has the weights only if `weights` is true. Errors that are raised in the block name the URI.

    Raises DataError if there is no model, and StorageError if it cannot be read or copied.
    """
    model = spec.model
    uri = model.pretrained
    if uri is None or "://" not in uri:
        yield model
        return
    field = ".".join(model.facts.path_of_pretrained)
    folder = local_folder(Folder(uri.rstrip("/"), spec.storage.endpoint if spec.storage else None), field, weights)
    try:
        yield model.with_pretrained(str(folder))
    except UserError as error:
        raise type(error)(str(error).replace(str(folder), uri)) from error


def source_of(name: str) -> str:
    """The source of the copy in a folder; returns other names unchanged."""
    file = Path(name).with_suffix(_SOURCE)
    return file.read_text() if file.parent == _copies() and file.exists() else name


def local_folder(remote: Folder, field: str, weights: bool) -> Path:
    """Copies the files as they are now; files that are later written under the same names get another copy. One process
    at a time copies, and the others wait for it. `field` is the path of the spec's field with the folder."""
    sizes = remote.sizes()
    if "config.json" not in sizes:
        found = ", ".join(sorted(sizes)[:10]) or "nothing"
        raise DataError(f"{field}: {remote.uri} is not a transformers model: it has no config.json, but {found}")
    written = sorted((name, size, time) for name, (size, time) in sizes.items())
    digest = hashlib.blake2b(repr((remote.uri, remote.endpoint, written)).encode(), digest_size=16).hexdigest()
    folder = _copies() / digest
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder.with_suffix(_SOURCE).write_text(remote.uri)
        for name in _wanted(sizes, weights):
            if not (folder / name).exists():
                remote.download(name, folder / f"{name}.part")
                os.replace(folder / f"{name}.part", folder / name)
    return folder


def _copies() -> Path:
    """The folder where the hub's client also keeps its downloads."""
    from huggingface_hub import constants

    return Path(constants.HF_HOME) / "trainjob"


def _wanted(names: Iterable[str], weights: bool) -> list[str]:
    """The files that transformers reads. Of weights, which may be there in several formats, only safetensors if there
    are any."""
    others = [name for name in names if not _WEIGHTS.fullmatch(name)]
    if not weights:
        return others
    safe = [name for name in names if name.endswith(".safetensors")]
    return [*others, *(safe or [name for name in names if _TORCH_WEIGHTS.fullmatch(name)])]
