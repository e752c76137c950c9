"""Rows of a table to numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute

from trainjob.data.arrays import as_lists
from trainjob.data.batches.examples import Examples
from trainjob.data.read.rows import ReadTable, Rows, SourcePart, as_text, check_columns, row_number
from trainjob.errors import UserError, listed
from trainjob.kinds.input import FormField
from trainjob.kinds.inputs.cells import as_categories, trimmed
from trainjob.kinds.inputs.python_rows import as_arrow_table
from trainjob.kinds.inputs.questions import Question, row_question
from trainjob.kinds.inputs.table_columns import TableColumn
from trainjob.kinds.inputs.unknown_categories import unknown_categories

if TYPE_CHECKING:
    from trainjob.kinds.inputs.cell_texts import CellTexts

pc: Any = pyarrow.compute  # whose functions type checkers do not know

PLAIN_CELLS = 20_000_000
"""Cells that a baseline learns from."""
EXCERPT_CHARACTERS = 1000
"""Characters of a row that are kept beside its prediction."""
BETWEEN = b"\x1f"
"""Separates cells."""
IN_CELL = b"\xff"
"""Replaces BETWEEN inside a cell: no text in UTF-8 contains this byte."""


@dataclass(frozen=True)
class TableInput:
    """Turns the cells of each row into numbers, numbers of categories, and tokens of texts.

    A prepared row is float32: the numbers, the categories and, where the table has columns of texts, the number of
    tokens of each, and the tokens.
    """

    noun: ClassVar[str] = "row"
    packs: ClassVar[bool] = False
    values_of_token: ClassVar[int] = 1

    read: list[TableColumn]
    texts: "CellTexts | None" = None
    """Tokenizes the columns of texts, if there are any."""

    @property
    def text_columns(self) -> list[str]:
        return [column.name for column in self.read if column.type == "text"]

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self.read]

    @property
    def levels(self) -> list[list[float]]:
        """The levels of the knots of each number that the network takes."""
        return [feature.levels for column in self.read for feature in column.numbers]

    @property
    def cardinalities(self) -> list[int]:
        """The number of categories of each column that has them."""
        return [column.categories.count for column in self.read if column.categories is not None]

    @property
    def value_type(self) -> pa.DataType:
        return pa.float32()

    @property
    def row_bytes(self) -> int:
        values = len(self.levels) + len(self.cardinalities)
        if self.texts is not None:
            values += round(len(self.text_columns) * (1 + self.texts.mean_length))
        return values * np.float32().itemsize + 2 * np.int64().itemsize

    def contents(self, table: pa.Table, where: Callable[[int], str] = row_number) -> list[bytes]:
        """The cells of all columns."""
        return joined_cells([_cells(table, name, where) for name in self.columns])

    def is_empty(self, content: bytes) -> bool:
        return not content.strip(BETWEEN)

    def check(self, rows: Rows) -> None:
        self.raw(rows.table, rows.where)

    def raw(self, table: pa.Table, where: Callable[[int], str] = row_number) -> list[list[np.ndarray]]:
        """The result of `TableColumn.raw` for each column.

        Raises DataError for missing columns, and RowError for a cell that is not of its column's type.
        """
        check_columns(self.columns, table.column_names, "the table")
        return [column.raw(_cells(table, column.name, where), where) for column in self.read]

    def transform(self, table: pa.Table, where: Callable[[int], str] = row_number) -> pa.Array:
        """Prepared rows, list<float32>."""
        rows = self._values([each for column in self.raw(table, where) for each in column])
        return self._prepared(rows, [_cells(table, name, where) for name in self.text_columns])

    def prepared(self, plain: pa.Table) -> Examples:
        rows = self._values([column.to_numpy() for column in numeric(plain).columns])
        texts = [column.combine_chunks() for column in plain.columns if pa.types.is_string(column.type)]
        return Examples.from_table(pa.table({"values": self._prepared(rows, texts)}))

    def _prepared(self, rows: np.ndarray, texts: Sequence[pa.Array]) -> pa.Array:
        if self.texts is not None:
            return self.texts.prepared(rows, texts)
        return as_lists(rows.reshape(-1), np.full(len(rows), rows.shape[1], np.int64))

    def _values(self, raw: Sequence[np.ndarray]) -> np.ndarray:
        """The numbers and the categories of each row, float32 [n, N + M], of the raw values of all columns."""
        numbers, categories, values = list[np.ndarray](), list[np.ndarray](), iter(raw)
        for column in self.read:
            numbers += [feature.transform(next(values)) for feature in column.numbers]
            if column.categories is not None:
                categories.append(next(values))
        return np.stack([*numbers, *categories], axis=1, dtype=np.float32, casting="unsafe")

    def shuffled(self, rows: Examples, column: str, order: np.ndarray) -> Examples:
        names = self.text_columns
        if self.texts is not None and column in names:
            return self.texts.shuffled(*self._parts_of(rows), names.index(column), order)
        positions, starts, values = self._positions(column), rows.offsets[:-1, None], rows.values.copy()
        values[starts + positions] = rows.values[starts[order] + positions]
        return Examples(values, rows.offsets)

    def _positions(self, column: str) -> np.ndarray:
        """The positions of the values of a column of numbers or categories in a prepared row."""
        number, category = 0, len(self.levels)
        for each in self.read:
            if each.name == column:
                return np.array(
                    [category] if each.categories is not None else range(number, number + len(each.numbers))
                )
            number, category = number + len(each.numbers), category + (each.categories is not None)
        raise KeyError(column)

    def _parts_of(self, rows: Examples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The numbers and categories of prepared rows, float32 [n, N + M], the number of tokens of each text, int64
        [n, T], and all tokens, float32 [t]."""
        width, texts = len(self.levels) + len(self.cardinalities), len(self.text_columns)
        if not texts:
            return rows.values.reshape(len(rows), -1), np.empty((len(rows), 0), np.int64), np.empty(0, np.float32)
        positions = rows.offsets[:-1, None] + np.arange(width + texts)
        heads, is_token = rows.values[positions], np.ones(len(rows.values), bool)
        is_token[positions] = False
        return heads[:, :width], heads[:, width:].astype(np.int64), rows.values[is_token]

    def batch(self, examples: Examples) -> dict[str, np.ndarray]:
        """`numbers` float32 [n, N], `categories` int64 [n, M], and the texts as `CellTexts.batch` returns them, where
        there are some."""
        rows, lengths, tokens = self._parts_of(examples)
        count = len(self.levels)
        inputs = {"numbers": np.ascontiguousarray(rows[:, :count])} if count else {}
        inputs |= {"categories": rows[:, count:].astype(np.int64)} if self.cardinalities else {}
        return inputs | (self.texts.batch(lengths, tokens) if self.texts is not None else {})

    def unknown_categories(self, table: pa.Table, where: Callable[[int], str] = row_number) -> dict[str, int]:
        return unknown_categories(self.read, table, where)

    def alone(self) -> Self:
        return self

    def table(self, rows: Sequence[Any] | np.ndarray, where: Callable[[int], str]) -> pa.Table:
        """Mappings from column to value; other columns are ignored."""
        for index, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise UserError(
                    f"{where(index)}: the model takes mappings from column to value, not {type(row).__name__}"
                )
            if missing := [name for name in self.columns if name not in row]:
                raise UserError(
                    f"{where(index)} has no {' and no '.join(missing)}; the model takes {listed(self.columns)}"
                )
        table = as_arrow_table(
            lambda: pa.table(
                {
                    name: pa.array([_text(row[name], name, where(i)) for i, row in enumerate(rows)], pa.string())
                    for name in self.columns
                }
            )
        )
        for column in self.read:
            if column.categories is None:
                continue
            cells = as_categories(_cells(table, column.name, where))
            for cell, name in column.categories.without_digits(column.categories.unknown(cells)).items():
                at, advice = cells.index(cell).as_py(), "give it as text, with all its digits"
                raise UserError(
                    f'{where(at)}: column "{column.name}": {cell} is not a category, but {name} is: {advice}'
                )
        return table

    def parts(self, found: Sequence[SourcePart], column: str | None, read: ReadTable) -> Sequence[SourcePart]:
        return found

    def question(self, most_rows: int) -> type[Question]:
        return row_question(self.columns, most_rows)

    def example(self) -> dict[str, Any]:
        return {"rows": [{column.name: column.example for column in self.read}]}

    @property
    def form_fields(self) -> list[FormField]:
        return [column.form_field for column in self.read]

    def plain(self, rows: Rows) -> pa.Table:
        """The features of all columns: float64 with NaN for missing values of columns where training had some, int64
        for categories, and texts."""
        columns = zip(self.read, self.raw(rows.table, rows.where), strict=True)
        features: list[Any] = [each for column, values in columns for each in column.filled(values)]
        features += [_cells(rows.table, name, rows.where) for name in self.text_columns]
        return pa.table({str(index): each for index, each in enumerate(features)})

    def most_plain_rows(self, width: int) -> int:
        return PLAIN_CELLS // (len(self.levels) + len(self.cardinalities))

    def cut_share(self, texts: Sequence[str]) -> float | None:
        return self.texts.cut_share(texts) if self.texts is not None else None

    def check_export(self, folder: Path, texts: Sequence[str]) -> None:
        """Transformers reads no tables."""

    def excerpts(self, rows: Rows, mistakes: np.ndarray) -> dict[str, pa.Array]:
        """All cells of each row, with their columns."""
        cells = [_cells(rows.table, name, rows.where).to_pylist() for name in self.columns]
        texts = [
            ", ".join(f"{name}={cell or ''}" for name, cell in zip(self.columns, row, strict=True))
            for row in zip(*cells, strict=True)
        ]
        return {"text": pa.array([text[:EXCERPT_CHARACTERS] for text in texts], pa.string())}

    def save(self, folder: Path) -> dict[str, Any]:
        state: dict[str, Any] = {"columns": [asdict(column) for column in self.read]}
        return state if self.texts is None else state | {"texts": self.texts.save(folder)}

    @classmethod
    def load(cls, folder: Path, state: dict[str, Any]) -> Self:
        """The input that was saved with these fields of preprocessor.json."""
        texts = None
        if "texts" in state:
            from trainjob.kinds.inputs.cell_texts import CellTexts

            texts = CellTexts.load(folder, state["texts"])
        return cls([TableColumn.load(each) for each in state["columns"]], texts)


def numeric(plain: pa.Table) -> pa.Table:
    """The columns of `TableInput.plain` without the texts."""
    return plain.select([index for index, field in enumerate(plain.schema) if not pa.types.is_string(field.type)])


def joined_cells(columns: Sequence[pa.Array]) -> list[bytes]:
    """The cells of each row, between separators."""
    cells = [column.cast(pa.binary()) for column in columns]
    joined = _joined(cells)
    separators = np.count_nonzero(np.frombuffer(joined.buffers()[2] or b"", np.uint8) == BETWEEN[0])
    if separators > len(joined) * (len(columns) - 1):
        joined = _joined([pc.replace_substring(each, BETWEEN, IN_CELL) for each in cells])
    return joined.to_pylist()


def separated_cells(rows: Sequence[bytes], columns: int) -> list[pa.Array]:
    """The cells of each column of rows that `joined_cells` returned; missing ones are empty."""
    flat = pc.split_pattern(pa.array(rows, pa.binary()), BETWEEN).flatten()
    cells = pc.replace_substring(flat, IN_CELL, BETWEEN).cast(pa.string())
    return [cells[column::columns] for column in range(columns)]


def _joined(cells: Sequence[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*cells, BETWEEN, null_handling="replace", null_replacement=b"")


def _cells(table: pa.Table, name: str, where: Callable[[int], str]) -> pa.Array:
    return trimmed(as_text(table[name], name, where))


def _text(value: Any, name: str, where: str) -> str | None:
    """A cell that a Python user gives, as text in a CSV file. Raises UserError if it has several values."""
    if isinstance(value, (Mapping, list, tuple, set)):
        raise UserError(f'{where}: column "{name}": a cell is one value, not a {type(value).__name__}')
    return None if value is None or value != value else str(value)
