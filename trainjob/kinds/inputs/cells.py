"""Cells of a table, which are text, as numbers, dates and flags.

Each function in READERS takes the cells of a column and returns two arrays: float64 [n], NaN where a cell is missing or
cannot be read; and bool [n], True where a cell cannot be read.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from trainjob.data.arrays import as_numpy, text_bytes
from trainjob.data.read.rows import Rows, as_text

Read = tuple[np.ndarray, np.ndarray]

pc: Any = pyarrow.compute  # whose functions type checkers do not know

MISSING = (
    *("", "-", "--", "?", ".", "na", "n/a", "n.a.", "#n/a", "#na", "nan", "<na>", "nat"),
    *("null", "none", "nil", "missing", "unknown"),
)
"""Cells without a value, in any case of letters, in columns of numbers, dates and flags."""
TRUE, FALSE = ("true", "t", "yes", "y", "on", "1", "1.0"), ("false", "f", "no", "n", "off", "0", "0.0")
EXACT = 2**53
"""The first whole number whose successor is the same float64."""
SECONDS_OF_A_DAY = 86_400
FEW_CELLS = 16
_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|infinity|nan(\(\w*\))?)$"
_WHOLE = r"^([+-]?\d+)\.0+$"
_INSTANTS = [pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in ("us", "ns")]


def cells_of(rows: Rows, name: str) -> pa.Array:
    """The cells of a column, without blanks around them."""
    if name not in rows.derived:
        rows.derived[name] = trimmed(as_text(rows.table[name], name, rows.where))
    return rows.derived[name]


def read_cells(rows: Rows, name: str, kind: str) -> Read:
    """Reads a column with the READERS' function for a type, once for each type."""
    if (name, kind) not in rows.derived:
        rows.derived[name, kind] = READERS[kind](cells_of(rows, name))
    return rows.derived[name, kind]


def trimmed(column: pa.ChunkedArray) -> pa.Array:
    """The cells of a text column without blanks around them."""
    cells = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], pa.string())
    return cells if _has_no_blanks(cells) else pc.utf8_trim_whitespace(cells)


def _has_no_blanks(cells: pa.Array) -> bool:
    """Whether all characters are visible ASCII characters: checking that is much faster than trimming each cell."""
    _, _, characters = text_bytes(cells)
    return not len(characters) or bool(characters.min() > ord(" ") and characters.max() < 0x80)


def as_categories(cells: pa.Array) -> pa.Array:
    """The names of categories; null where a cell is empty. A whole number is the same category with and without `.0`,
    which pandas adds to integers if some are missing."""
    names = pc.replace_substring_regex(cells, _WHOLE, r"\1")
    return pc.if_else(pc.equal(names, ""), None, names)


def as_numbers(cells: pa.Array) -> Read:
    for some in (cells, pc.if_else(pc.equal(cells, ""), None, cells)):
        with suppress(pa.ArrowInvalid):
            pc.cast(some[:FEW_CELLS], pa.float64())  # fails at once for texts, where a cast of all cells is slow
            return _floats(pc.cast(some, pa.float64())), np.zeros(len(cells), bool)
    return _by_value(_as_numbers, cells)


def _as_numbers(cells: pa.Array) -> Read:
    known = _known(pc.utf8_lower(cells))
    is_number = pc.match_substring_regex(known, _NUMBER)
    return _floats(pc.cast(pc.if_else(is_number, known, None), pa.float64())), _mask(pc.invert(is_number))


def as_flags(cells: pa.Array) -> Read:
    return _by_value(_as_flags, cells)


def _as_flags(cells: pa.Array) -> Read:
    known = _known(pc.utf8_lower(cells))
    values = pc.case_when(pc.make_struct(pc.is_in(known, pa.array(TRUE)), pc.is_in(known, pa.array(FALSE))), 1.0, 0.0)
    found = _floats(values)
    return found, _mask(pc.is_valid(known)) & np.isnan(found)


def as_days(cells: pa.Array) -> Read:
    """Days since 1970, in UTC, of dates and times in ISO 8601 such as 2026-11-28 or 2026-11-28T17:30:00+01:00."""
    return _by_value(_as_days, cells)


def _as_days(cells: pa.Array) -> Read:
    known = _known(pc.utf8_lower(cells), cells)
    for kind in _INSTANTS:
        try:
            instants = pc.cast(known, kind)
        except pa.ArrowInvalid:
            continue
        units = {"us": 10**6, "ns": 10**9}[kind.unit] * SECONDS_OF_A_DAY
        whole, rest = np.divmod(_integers(instants), units)
        return np.where(_mask(pc.is_null(known)), np.nan, whole + rest / units), np.zeros(len(cells), bool)
    days = np.array([_day(cell) for cell in known.to_pylist()], np.float64)
    return days, np.isnan(days) & _mask(pc.is_valid(known))


READERS: dict[str, Callable[[pa.Array], Read]] = {"number": as_numbers, "date": as_days, "flag": as_flags}
"""The reader of cells of each type of column."""


def _by_value(read: Callable[[pa.Array], Read], cells: pa.Array) -> Read:
    """The result of `read(cells)`, computed once for each distinct cell."""
    encoded = cells.dictionary_encode("encode")
    values, is_bad = read(encoded.dictionary)
    indices = as_numpy(encoded.indices)
    return values[indices], is_bad[indices]


def _day(cell: str | None) -> float:
    try:
        instant = datetime.fromisoformat(cell or "")
    except ValueError:
        return np.nan
    if instant.tzinfo is not None:
        instant = (instant - (instant.utcoffset() or instant - instant)).replace(tzinfo=None)
    return (instant - datetime(1970, 1, 1)).total_seconds() / SECONDS_OF_A_DAY


def _known(lowered: pa.Array, cells: pa.Array | None = None) -> pa.Array:
    """The cells, null where they are missing."""
    return pc.if_else(pc.is_in(lowered, pa.array(MISSING)), None, lowered if cells is None else cells)


def _floats(values: pa.Array) -> np.ndarray:
    return as_numpy(pc.fill_null(values, np.nan))


def _integers(values: pa.Array) -> np.ndarray:
    return as_numpy(pc.fill_null(values.cast(pa.int64()), 0))


def _mask(values: pa.Array) -> np.ndarray:
    """bool [n], False for null."""
    return as_numpy(pc.fill_null(values, False).cast(pa.uint8())).astype(bool)
