"""The protocol of a fitted input, which turns rows into the arrays that a network takes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from trainjob.errors import notify

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from trainjob.data.batches.examples import Examples
    from trainjob.data.read.rows import ReadTable, Rows, SourcePart

Where = Callable[[int], str]
"""Returns the location of the row at an index, for error messages."""


class FormField(NamedTuple):
    """A field of the form on the page of `trainjob serve`."""

    column: str
    """The column that the field fills in, and its label."""
    is_text: bool
    """Whether the cell is a text; the field then has several lines."""
    placeholder: str | float | None = None
    """A typical cell, shown while the field is empty."""


class Input(Protocol):
    """Turns rows into the arrays that a network takes. It is fitted on the training rows and knows no labels.

    Picklable: workers and Ray tasks get a copy.
    """

    noun: ClassVar[str]
    """The noun for one row in messages: a singular such as "text" or "image"."""
    packs: ClassVar[bool]
    """Whether `transform` joins short rows and cuts long ones, so that it returns another number of rows."""
    values_of_token: ClassVar[int]
    """The number of values of a prepared row for each of its tokens; 1 where rows have no tokens."""

    @property
    def value_type(self) -> "pa.DataType":
        """The type of the values of a prepared row, such as uint8 for pixels."""
        ...

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        ...

    @property
    def row_bytes(self) -> int:
        """The average memory of a prepared row."""
        ...

    def contents(self, table: "pa.Table", where: Where) -> list[bytes]:
        """The raw content of each row: equal rows have equal contents, and the split hashes them."""
        ...

    def is_empty(self, content: bytes) -> bool:
        """Whether a row with this content has nothing to learn from. The data profile counts such rows."""
        ...

    def check(self, rows: "Rows") -> None:
        """Raises RowError for the first row that `transform` cannot use."""
        ...

    def transform(self, table: "pa.Table", where: Where) -> "pa.Array":
        """Prepared rows: a list of values each. Raises DataError for rows that cannot be used."""
        ...

    def batch(self, examples: "Examples") -> "dict[str, np.ndarray]":
        """The network's inputs by name, each [n, ...], of prepared rows."""
        ...

    def alone(self) -> "Input":
        """The input of rows to answer, which may be a part of a training row."""
        ...

    def table(self, rows: "Sequence[Any] | np.ndarray", where: Where) -> "pa.Table":
        """A table with `columns` of the rows that a Python user gives to `Predictor`. Raises UserError for unsuitable
        rows."""
        ...

    def parts(self, found: "Sequence[SourcePart]", column: str | None, read: "ReadTable") -> "Sequence[SourcePart]":
        """Readers of the rows to predict in `found`, the parts of a source. `column` holds the content of rows, where
        it is known; `read` reads a table."""
        ...

    def question(self, most_rows: int) -> type[Any]:
        """The requests of `trainjob serve`, with up to `most_rows` rows: a pydantic model."""
        ...

    def example(self) -> dict[str, Any]:
        """A request that the model answers."""
        ...

    @property
    def form_fields(self) -> list[FormField]:
        """The fields that people fill in on the page of `trainjob serve`; empty where they choose a file."""
        ...

    def plain(self, rows: "Rows") -> "list[str] | np.ndarray | pa.Table":
        """The features for a baseline: the text of each row, numbers [n, features], or the columns of a table: float64
        with NaN for missing numbers, int64 for categories, and texts."""
        ...

    def most_plain_rows(self, width: int) -> int:
        """The most rows of a set that a baseline with `width` outputs can process in a few seconds."""
        ...

    def cut_share(self, texts: "Sequence[str]") -> float | None:
        """The fraction of these training texts that `transform` truncates; None if it never does."""
        ...

    def check_export(self, folder: Path, texts: "Sequence[str]") -> None:
        """Raises DataError if transformers, given the model's files in `folder`, tokenizes these training texts
        differently from `transform`."""
        ...

    def excerpts(self, rows: "Rows", mistakes: "np.ndarray") -> "dict[str, pa.Array]":
        """Columns that show the rows to people, kept beside the predictions: texts, or thumbnails of the `mistakes`,
        indices of rows whose wrong predictions the report shows."""
        ...

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes the files that lie beside preprocessor.json, and returns the fields of preprocessor.json."""
        ...


@runtime_checkable
class SeparateColumns(Protocol):
    """An input whose prepared rows consist of values of single columns, so that one column can be shuffled without the
    others."""

    @property
    def columns(self) -> list[str]: ...

    def prepared(self, plain: "pa.Table") -> "Examples":
        """Prepared rows of what `Input.plain` returned for them."""
        ...

    def shuffled(self, rows: "Examples", column: str, order: "np.ndarray") -> "Examples":
        """Prepared rows in which the values of a column are those of the rows at the indices `order`, int64 [n]."""
        ...


def separate_columns(fitted: Input) -> SeparateColumns | None:
    """The same input if it prepares each column by itself; None otherwise."""
    return fitted if isinstance(fitted, SeparateColumns) else None


@runtime_checkable
class WithCategories(Protocol):
    """An input that reads columns of categories."""

    def unknown_categories(self, table: "pa.Table", where: Where) -> dict[str, int]:
        """The number of cells with a category that the model has not learned, for each column that has such cells."""
        ...


def unknown_categories(fitted: Input, table: "pa.Table", where: Where) -> dict[str, int]:
    """The unknown categories of any input; empty for inputs without categories."""
    return fitted.unknown_categories(table, where) if isinstance(fitted, WithCategories) else {}


def unknown_in_words(cells: Mapping[str, int], rows: int) -> str:
    """A clause about such cells in this many rows; empty if there are none."""
    if not cells:
        return ""
    counted = ", ".join(f"{name} {count:,}" for name, count in cells.items())
    of_rows = "1 row" if rows == 1 else f"{rows:,} rows"
    return f"cells whose category the model has not learned, of {of_rows}: {counted}"


def tell_unknown_categories(cells: Mapping[str, int], rows: int) -> None:
    """Gives a Notice of such cells, if there are any."""
    if words := unknown_in_words(cells, rows):
        notify(words)
