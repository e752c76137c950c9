"""Files of prepared rows. The workers of a machine map them into memory, and so share one copy."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.lib.format import dtype_to_descr, write_array_header_1_0

from trainjob.data import Examples


class _ArrayFile:
    """A file of an array, in NumPy's format, that grows along the first axis."""

    def __init__(self, file: IO[bytes], first: np.ndarray) -> None:
        self._file, self._like, self._length = file, first[:0], 0
        self._write_header()

    def append(self, array: np.ndarray) -> None:
        if not self._length:  # an array without rows may not know the length of its rows
            self._like = array[:0]
        self._length += len(array)
        self._file.write(np.ascontiguousarray(array, self._like.dtype).data)

    def finish(self) -> None:
        """Writes the length, for which the header has room."""
        self._file.seek(0)
        self._write_header()

    def _write_header(self) -> None:
        shape = (self._length, *self._like.shape[1:])
        header = {"descr": dtype_to_descr(self._like.dtype), "fortran_order": False, "shape": shape}
        write_array_header_1_0(self._file, header)


class _SetFiles:
    """The files of one set, one for each array."""

    def __init__(self, folder: Path, files: ExitStack) -> None:
        self._folder, self._open, self._arrays, self._values = folder, files, dict[str, _ArrayFile](), 0
        folder.mkdir(parents=True)

    def append(self, rows: Examples) -> None:
        for array in fields(rows):
            values = getattr(rows, array.name)
            if values is None:
                continue
            if array.name not in self._arrays:
                file = self._open.enter_context((self._folder / f"{array.name}.npy").open("w+b"))
                self._arrays[array.name] = _ArrayFile(file, values)
                if array.name == "offsets":
                    self._arrays[array.name].append(values[:1])
            self._arrays[array.name].append(values[1:] + self._values if array.name == "offsets" else values)
        self._values += len(rows.values)

    def finish(self) -> None:
        for array in self._arrays.values():
            array.finish()


def save_rows(tables: Iterable[tuple[str, pa.Table]], folder: Path) -> None:
    """Writes prepared rows, each table with the name of its set, without keeping them in memory."""
    with ExitStack() as files:
        sets = dict[str, _SetFiles]()
        for name, table in tables:
            if name not in sets:
                sets[name] = _SetFiles(folder / name, files)
            sets[name].append(Examples.from_table(table))
        for rows in sets.values():
            rows.finish()


def map_rows(folder: Path) -> dict[str, Examples]:
    """Maps the rows that `save_rows` wrote."""
    return {
        path.name: Examples(**{file.stem: np.load(file, mmap_mode="r") for file in path.iterdir()})
        for path in folder.iterdir()
    }
