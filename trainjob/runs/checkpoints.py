"""The format of a run's checkpoints: the names of their folders and files, the manifest, and the tensor files.

The folder `checkpoints/epoch-0003-step-00000120` contains, after 3 epochs and 120 steps:

    state/00002.bin    rank 2's rows of each weight and of the optimizer's state
    state/00002.json   their index: maps each tensor's name to its dtype, shape, rows and offset in the .bin file
    ranks/00002.pt     rank 2's random states
    progress.json      epoch and step, learning rates, the states of the schedule and of the loss scaler
    evaluation.json    the scores, if the model was validated
    config.json, ...   the files of a model, except for its weights
    checkpoint.json    the manifest, written last

A checkpoint is complete once its manifest exists, and intact if every file matches its digest in the manifest. Any
number of ranks can read the tensors, and each reads only the rows that it needs. Unlike pickle, this executes no code.
When checkpoints are saved is decided in `worker/checkpointing.py`.
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple

from trainjob.api import Checkpoints
from trainjob.errors import StorageError
from trainjob.runs.files import CHECKPOINTS, EVALUATION
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder, concurrently

MANIFEST = "checkpoint.json"
STATE = "state"
RANKS = "ranks"
PROGRESS = "progress.json"
WEIGHT = "model."
"""Prefix of the names of the model's tensors; the others are the optimizer's."""
READ_BYTES = 64 * 2**20
"""Maximum size of one read, except for larger rows."""
_NAME = re.compile(r"epoch-\d+-step-\d+")
_ALIGNMENT = 8
"""Alignment of each tensor in a file, in bytes."""
_DTYPE_BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
"""Bytes per element, by safetensors' name of the dtype: https://github.com/huggingface/safetensors#format"""


class Manifest(StrictModel):
    """The position of a checkpoint in training, its metrics and its files."""

    epoch: int
    """Epochs completed."""
    step: int
    """Optimizer steps taken."""
    metrics: dict[str, float]
    """Metrics of the epoch that ends at this step; empty within an epoch."""
    files: dict[str, str]
    """SHA-256 of each file by its path in the checkpoint's folder. Other files there, of an interrupted attempt, are
    ignored."""


def checkpoint_name(epoch: int, step: int) -> str:
    """The name of the folder for the checkpoint after `epoch` epochs and `step` steps."""
    return f"epoch-{epoch:04d}-step-{step:08d}"


def step_of(name: str) -> int:
    """The number of steps in the name of a checkpoint's folder."""
    return int(name.rpartition("-")[2])


def random_states_file(rank: int) -> str:
    return f"{RANKS}/{rank:05d}.pt"


def belongs_to_model(name: str) -> bool:
    """Whether a file of a checkpoint is part of its model, rather than only needed to resume training."""
    return name.partition("/")[0] not in (RANKS, PROGRESS, EVALUATION)


def read_manifest(checkpoint: Folder) -> Manifest | None:
    """Returns None if the checkpoint in this folder is incomplete."""
    try:
        return Manifest.model_validate_json(checkpoint.read(MANIFEST)) if checkpoint.exists(MANIFEST) else None
    except ValueError:
        return None


def files_of(checkpoint: Folder) -> dict[str, str]:
    """The digests of a checkpoint's files. Raises StorageError if the checkpoint is incomplete."""
    manifest = read_manifest(checkpoint)
    if manifest is None:
        raise StorageError(f"{checkpoint.uri}: the checkpoint is not complete, as its {MANIFEST} is missing or damaged")
    return manifest.files


class SavedCheckpoints:
    """Finds and ranks the checkpoints of a run."""

    def __init__(self, run: Folder, spec: Checkpoints) -> None:
        self._folder, self.spec = run / CHECKPOINTS, spec

    def __truediv__(self, name: str) -> Folder:
        """The folder of a checkpoint."""
        return self._folder / name

    def uri(self, name: str) -> str:
        return (self / name).uri

    def names(self) -> list[str]:
        """The names of all checkpoint folders, complete or not, earliest first."""
        return sorted(filter(_NAME.fullmatch, self._folder.list()), key=step_of)

    def manifest(self, name: str) -> Manifest | None:
        return read_manifest(self / name)

    def ranked(self) -> list[tuple[str, Manifest]]:
        """Complete, validated checkpoints with their names, best first; ties in order of step."""
        complete = ((name, self.manifest(name)) for name in self.names())
        ranked = [(name, found) for name, found in complete if found is not None and self.spec.metric in found.metrics]
        return sorted(ranked, key=lambda item: self.value(item[1]), reverse=not self.spec.lower_is_better)

    def value(self, manifest: Manifest) -> float:
        """The value of the metric that ranks checkpoints."""
        return manifest.metrics[self.spec.metric]


class TensorType(NamedTuple):
    """The type of a whole tensor."""

    dtype: str
    """The name in safetensors' format."""
    shape: tuple[int, ...]


@dataclass(frozen=True)
class TensorRows:
    """Consecutive rows of a tensor. A scalar has one row."""

    name: str
    dtype: str
    """The name in safetensors' format."""
    shape: tuple[int, ...]
    """The shape of the whole tensor."""
    start: int
    """The index of the first row."""
    rows: int
    data: memoryview


class _Entry(StrictModel):
    """An index entry: the position of some rows of a tensor in a file."""

    dtype: str
    shape: list[int]
    start: int
    rows: int
    offset: int

    @property
    def row_bytes(self) -> int:
        return _DTYPE_BYTES[self.dtype] * math.prod(self.shape[1:])


class _ByteRange(NamedTuple):
    """The bytes of consecutive rows of a tensor in a file."""

    file: str
    offset: int
    size: int
    name: str
    start: int


def write_rank_tensors(folder: Path, rank: int, tensors: Iterable[TensorRows]) -> None:
    """Writes the rows of one rank, and their index, into a checkpoint's local folder."""
    state = folder / STATE
    state.mkdir(parents=True, exist_ok=True)
    entries: dict[str, _Entry] = {}
    offset = 0
    with (state / f"{rank:05d}.bin").open("wb") as file:
        for rows in tensors:
            entries[rows.name] = _Entry(
                dtype=rows.dtype, shape=list(rows.shape), start=rows.start, rows=rows.rows, offset=offset
            )
            file.write(rows.data)
            file.write(bytes(-rows.data.nbytes % _ALIGNMENT))
            offset = file.tell()
    index = {name: entry.model_dump() for name, entry in entries.items()}
    (state / f"{rank:05d}.json").write_text(json.dumps(index))


class CheckpointTensors:
    """Reads the tensors of a checkpoint. Every method raises StorageError if rows of a tensor are missing."""

    def __init__(self, folder: Folder, files: Collection[str]) -> None:
        """`files` are the names in the checkpoint's manifest."""
        self._folder, self._files = folder / STATE, files

    @cached_property
    def _index(self) -> dict[str, list[tuple[str, _Entry]]]:
        """Maps each tensor's name to its index entries, with their files, in order of rows."""
        files = [file for file in self._folder.list() if file.endswith(".json") and f"{STATE}/{file}" in self._files]
        found: dict[str, list[tuple[str, _Entry]]] = {}
        for file, index in zip(files, concurrently(self._folder.read, files), strict=True):
            for name, entry in json.loads(index).items():
                found.setdefault(name, []).append((file.replace(".json", ".bin"), _Entry.model_validate(entry)))
        for name, entries in found.items():
            entries.sort(key=lambda item: item[1].start)
            self._check_complete(name, [entry for _, entry in entries])
        return found

    def _check_complete(self, name: str, entries: list[_Entry]) -> None:
        end = 0
        for entry in entries:
            if entry.start != end:
                break
            end += entry.rows
        rows = entries[0].shape[0] if entries[0].shape else 1
        if end != rows:
            raise StorageError(f"{self._folder.uri} does not contain each of the {rows} rows of {name} exactly once")

    def names(self, prefix: str = "") -> list[str]:
        """The names of the tensors that start with `prefix`."""
        return [name for name in self._index if name.startswith(prefix)]

    def type(self, name: str) -> TensorType | None:
        """The type of a tensor, or None if there is no such tensor."""
        if name not in self._index:
            return None
        _, first = self._index[name][0]
        return TensorType(first.dtype, tuple(first.shape))

    def read(self, rows: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, memoryview]]:
        """Reads rows, given as (tensor, first row, end row).

        Yields chunks (tensor, first row, bytes) in the order of the files. Adjacent rows are read in one request."""
        ranges = [found for name, start, end in rows for found in self._ranges(name, start, end)]
        chunk: list[_ByteRange] = []
        for found in sorted(ranges):
            if chunk and not _extends(chunk, found):
                yield from self._read(chunk)
                chunk = []
            chunk.append(found)
        if chunk:
            yield from self._read(chunk)

    def export(self, file: Path) -> None:
        """Writes the model's weights to one safetensors file, reading at most READ_BYTES at a time."""
        header: dict[str, object] = {"__metadata__": {"format": "pt"}}
        names, end = sorted(self.names(WEIGHT)), 0
        for name in names:
            _, first = self._index[name][0]
            start, end = end, end + _DTYPE_BYTES[first.dtype] * math.prod(first.shape)
            header[name.removeprefix(WEIGHT)] = {
                "dtype": first.dtype,
                "shape": first.shape,
                "data_offsets": [start, end],
            }
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with file.open("wb") as opened:
            opened.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                self._copy(name, opened)

    def _copy(self, name: str, file: BinaryIO) -> None:
        begin, (_, first) = file.tell(), self._index[name][0]
        for _, start, data in self.read([(name, 0, first.shape[0] if first.shape else 1)]):
            file.seek(begin + start * first.row_bytes)
            file.write(data)
        file.seek(0, 2)

    def _ranges(self, name: str, start: int, end: int) -> Iterator[_ByteRange]:
        for file, entry in self._index[name]:
            first, last = max(start, entry.start), min(end, entry.start + entry.rows)
            rows = max(1, READ_BYTES // max(1, entry.row_bytes))
            for row in range(first, last, rows):
                size = min(rows, last - row) * entry.row_bytes
                if size:
                    yield _ByteRange(file, entry.offset + (row - entry.start) * entry.row_bytes, size, name, row)

    def _read(self, chunk: list[_ByteRange]) -> Iterator[tuple[str, int, memoryview]]:
        begin = chunk[0].offset
        data = memoryview(self._folder.read_range(chunk[0].file, begin, chunk[-1].offset + chunk[-1].size - begin))
        for one in chunk:
            yield one.name, one.start, data[one.offset - begin : one.offset - begin + one.size]


def _extends(chunk: list[_ByteRange], found: _ByteRange) -> bool:
    """Whether `found` follows the chunk in its file, and both fit into one read."""
    gap = found.offset - (chunk[-1].offset + chunk[-1].size)
    size = found.offset + found.size - chunk[0].offset
    return found.file == chunk[-1].file and gap < _ALIGNMENT and size <= READ_BYTES
