"""The tensors of a checkpoint, in parts: each rank writes some rows of each tensor, and any number of ranks reads them.

`state/00003.bin` has the bytes of rank 3's rows one after another, and `state/00003.json` says where: by the tensor's
name its type, its shape and the rows. So a rank reads what it needs and nothing else, and no file runs code when it is
read.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from trainjob.errors import StorageError
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder, concurrently

STATE = "state"
"""The folder of the tensors in that of a checkpoint."""
RANKS = "ranks"
"""That of the random states of each rank."""
PROGRESS = "progress.json"
"""How far training has come, the learning rates, and the state of schedule and loss scaling."""
WEIGHT = "model."
"""Begins the names of the tensors that are the model."""
READ_BYTES = 64 * 2**20
"""At most so many are read at once, where a row is not larger."""
_ALIGNED = 8
"""Bytes: where the rows of a tensor begin in a file."""
_BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
"""Of a number, by safetensors' name of its type: https://github.com/huggingface/safetensors#format"""


@dataclass(frozen=True)
class Rows:
    """Some rows of a tensor; of a tensor without dimensions, the only one."""

    name: str
    dtype: str
    """As safetensors calls it."""
    shape: tuple[int, ...]
    """Of the whole tensor."""
    start: int
    """The first of the rows."""
    rows: int
    data: memoryview


class _Piece(StrictModel):
    dtype: str
    shape: list[int]
    start: int
    rows: int
    offset: int

    @property
    def row_bytes(self) -> int:
        return _BYTES[self.dtype] * math.prod(self.shape[1:])


@dataclass(frozen=True)
class _Range:
    """Rows that lie one after another in a file."""

    file: str
    offset: int
    size: int
    name: str
    start: int


def write_part(folder: Path, rank: int, tensors: Iterable[Rows]) -> None:
    """Writes a rank's rows into a checkpoint's folder."""
    state = folder / STATE
    state.mkdir(parents=True, exist_ok=True)
    pieces: dict[str, _Piece] = {}
    offset = 0
    with (state / f"{rank:05d}.bin").open("wb") as file:
        for rows in tensors:
            pieces[rows.name] = _Piece(
                dtype=rows.dtype, shape=list(rows.shape), start=rows.start, rows=rows.rows, offset=offset
            )
            file.write(rows.data)
            file.write(bytes(-rows.data.nbytes % _ALIGNED))
            offset = file.tell()
    index = {name: piece.model_dump() for name, piece in pieces.items()}
    (state / f"{rank:05d}.json").write_text(json.dumps(index))


class Parts:
    """The tensors of the checkpoint in `folder`. Every method raises StorageError where a part of them is missing."""

    def __init__(self, folder: Folder, files: Collection[str]) -> None:
        """`files` are those that the checkpoint's manifest names: parts of an attempt that was cut off may lie beside
        them."""
        self._folder, self._files = folder / STATE, files

    @cached_property
    def _pieces(self) -> dict[str, list[tuple[str, _Piece]]]:
        """Of each tensor, in order of their rows: the file and where they lie in it."""
        files = [file for file in self._folder.list() if file.endswith(".json") and f"{STATE}/{file}" in self._files]
        found: dict[str, list[tuple[str, _Piece]]] = {}
        for file, index in zip(files, concurrently(self._folder.read, files), strict=True):
            for name, piece in json.loads(index).items():
                found.setdefault(name, []).append((file.replace(".json", ".bin"), _Piece.model_validate(piece)))
        for name, pieces in found.items():
            pieces.sort(key=lambda item: item[1].start)
            self._check_whole(name, [piece for _, piece in pieces])
        return found

    def _check_whole(self, name: str, pieces: list[_Piece]) -> None:
        end = 0
        for piece in pieces:
            if piece.start != end:
                break
            end += piece.rows
        rows = pieces[0].shape[0] if pieces[0].shape else 1
        if end != rows:
            raise StorageError(f"{self._folder.uri} lacks a part: of {name} there are not all {rows} rows, each once")

    def names(self, prefix: str = "") -> list[str]:
        """Of the tensors whose names begin so."""
        return [name for name in self._pieces if name.startswith(prefix)]

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Of the whole tensor; None where there is none of this name."""
        return tuple(self._pieces[name][0][1].shape) if name in self._pieces else None

    def read(self, wanted: Iterable[tuple[str, int, int]]) -> Iterator[tuple[str, int, memoryview]]:
        """For rows (tensor, first, end), pieces of them in an order of their own: tensor, first row, bytes. Rows that
        lie side by side are read at once."""
        ranges = [found for name, start, end in wanted for found in self._ranges(name, start, end)]
        run: list[_Range] = []
        for found in sorted(ranges, key=lambda one: (one.file, one.offset)):
            if run and not _continues(run, found):
                yield from self._read(run)
                run = []
            run.append(found)
        if run:
            yield from self._read(run)

    def export(self, file: Path) -> None:
        """Writes the model's weights as one safetensors file, some rows at a time."""
        header: dict[str, object] = {"__metadata__": {"format": "pt"}}
        names, end = sorted(self.names(WEIGHT)), 0
        for name in names:
            _, first = self._pieces[name][0]
            start, end = end, end + _BYTES[first.dtype] * math.prod(first.shape)
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
        begin, (_, first) = file.tell(), self._pieces[name][0]
        for _, start, data in self.read([(name, 0, first.shape[0] if first.shape else 1)]):
            file.seek(begin + start * first.row_bytes)
            file.write(data)
        file.seek(0, 2)

    def _ranges(self, name: str, start: int, end: int) -> Iterator[_Range]:
        for file, piece in self._pieces[name]:
            first, last = max(start, piece.start), min(end, piece.start + piece.rows)
            rows = max(1, READ_BYTES // max(1, piece.row_bytes))
            for row in range(first, last, rows):
                size = min(rows, last - row) * piece.row_bytes
                if size:
                    yield _Range(file, piece.offset + (row - piece.start) * piece.row_bytes, size, name, row)

    def _read(self, run: list[_Range]) -> Iterator[tuple[str, int, memoryview]]:
        begin = run[0].offset
        data = memoryview(self._folder.read_range(run[0].file, begin, run[-1].offset + run[-1].size - begin))
        for one in run:
            yield one.name, one.start, data[one.offset - begin : one.offset - begin + one.size]


def _continues(run: list[_Range], found: _Range) -> bool:
    gap = found.offset - (run[-1].offset + run[-1].size)
    size = found.offset + found.size - run[0].offset
    return found.file == run[-1].file and gap < _ALIGNED and size <= READ_BYTES
