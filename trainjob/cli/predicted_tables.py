"""Reads the rows of DATA for `trainjob predict`, and writes them with the predictions."""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.cli.output import console
from trainjob.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

    from trainjob.data.read.bad_rows import BadRows
    from trainjob.data.read.rows import OnBadRow, Rows, SourcePart

FORMATS = (".csv", ".parquet")
SECONDS_BETWEEN_LINES = 10.0


def check_output(output: Path) -> None:
    if output.suffix not in FORMATS:
        raise UserError(f"--output {output}: must end in {' or '.join(FORMATS)}")
    if re.match(r"\w\w+:/", str(output)):
        raise UserError(f"cannot write {output}: name a file on this machine, and copy it from there")
    if output.is_dir():
        raise UserError(f"cannot write {output}: it is a folder")
    if not output.parent.is_dir():
        raise UserError(f"cannot write {output}: there is no folder {output.parent}")


def input_parts(
    data: str, output: Path, nested: Sequence[str] = (), optional: Sequence[str] = ()
) -> "list[SourcePart]":
    """The parts of DATA. Raises UserError if `output` would replace one of its files, under any path."""
    from trainjob.api import Source
    from trainjob.data.read.source import parts

    found = parts(Source(uri=data), None, labelled=False, nested=nested, optional=optional)
    if any(_is_file(part.uri, output) for part in found):
        raise UserError(f"--output {output} would overwrite the input ({data}): choose another name")
    return found


def _is_file(uri: str, file: Path) -> bool:
    from trainjob.data.read.opening import is_http
    from trainjob.storage import open_filesystem

    if is_http(uri) or uri.startswith(("s3://", "gs://", "hf://")):
        return False
    _, path = open_filesystem(uri)
    return file.exists() and Path(path).exists() and file.samefile(path)


def read(part: "SourcePart", needed: Sequence[str], on_bad: "OnBadRow") -> "Iterator[Rows]":
    """All columns, including `needed`; those of CSV and JSON Lines as text, as in training: 007 stays 007. Calls
    `on_bad` for each row that cannot be read."""
    from trainjob.data.read.json_lines import JSONLinesFile
    from trainjob.data.read.partitions import Partition
    from trainjob.data.read.tables import CSVFile

    file, others = (part.part, part.names) if isinstance(part, Partition) else (part, [])
    if not isinstance(file, CSVFile | JSONLinesFile):
        return part.read(None, on_bad)
    if isinstance(file, JSONLinesFile):
        plain = file.plain_columns()
        found = [name for name, is_plain in plain.items() if is_plain]
        _tell_left_out([name for name, is_plain in plain.items() if not is_plain and name not in needed])
    else:
        found = file.names()
    names = list(dict.fromkeys([*found, *others]))
    return part.read(names + [name for name in needed if name not in names], on_bad)


def predicted(
    batches: "Iterable[Rows]", predict: "Callable[[Rows], pa.Table]", check: "Callable[[Rows], object]", bad: "BadRows"
) -> "Iterator[pa.Table]":
    """The predictions of each batch. After the first unusable row, the rest is only checked.

    Raises DataError for all rows in `bad`: `batches` adds the rows that cannot be read to it, and `check` finds those
    that cannot be predicted.
    """
    from trainjob.data.read.bad_rows import bad_rows_error, valid_rows
    from trainjob.errors import RowError

    for rows in batches:
        if bad.count:
            valid_rows(rows, check, bad.add)
            continue
        try:
            table = predict(rows)
        except RowError:
            valid_rows(rows, check, bad.add)
            if not bad.count:
                raise
        else:
            yield table
    if bad.count:
        raise bad_rows_error({"": bad}, {}, advice="Correct these rows.")


def printable_columns(rows: "Rows") -> "dict[str, Any]":
    """The columns that fit into a table: no lists or objects, and of an image where it comes from."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, column in zip(rows.table.column_names, rows.table.columns, strict=True):
        if name == "image" and not pa.types.is_string(column.type):
            columns[name] = [rows.where(index) for index in range(len(rows.table))]
        elif not pa.types.is_nested(column.type):
            columns[name] = column
        else:
            _tell_left_out([name])
    return columns


def _tell_left_out(names: Sequence[str]) -> None:
    """A Notice on columns that hold lists or objects."""
    from trainjob.errors import listed, notify

    if names:
        notify(f"left out of the output, because they hold lists or objects: {listed(names)}")


def flat(answers: "pa.Table") -> "pa.Table":
    """The answers, with a column `prediction_NAME` for each field of a prediction that is an object."""
    import pyarrow as pa

    from trainjob.data.read.csv_injection import OF_COLUMN, PREDICTION

    kind = answers.schema.field(PREDICTION).type
    if not pa.types.is_struct(kind):
        return answers
    fields = answers[PREDICTION].combine_chunks().flatten()
    return pa.table({f"{OF_COLUMN}{field.name}": each for field, each in zip(kind, fields, strict=True)})


def _counted(tables: "Iterator[pa.Table]") -> "Iterator[pa.Table]":
    """Yields the tables, and shows on standard error how many of their rows are done."""

    out = console(stderr=True)
    rows, next_line = 0, time.monotonic() + SECONDS_BETWEEN_LINES
    with out.status("loading") if out.is_terminal else nullcontext() as status:
        for table in tables:
            rows += len(table)
            if status is not None:
                status.update(f"{rows:,} rows predicted")
            elif time.monotonic() >= next_line:
                print(f"{rows:,} rows predicted", file=sys.stderr, flush=True)
                next_line = time.monotonic() + SECONDS_BETWEEN_LINES
            yield table


def write(tables: "Iterator[pa.Table]", data: str, output: Path) -> int:
    """Write the tables one after the other, and return their rows. `output` appears when all are written."""
    import pyarrow as pa
    from pyarrow.csv import CSVWriter
    from pyarrow.parquet import ParquetWriter

    from trainjob.data.read.csv_injection import escaped

    tables = _counted(tables)
    first = next(tables, None)
    if first is None:
        raise UserError(f"{data} has no rows")
    rows, is_csv = 0, output.suffix == ".csv"
    partial = output.with_name(f".{output.name}.partial")
    try:
        written = (lambda table: escaped(_with_json(table))) if is_csv else (lambda table: table)
        with (CSVWriter if is_csv else ParquetWriter)(partial, written(first).schema) as writer:
            for table in chain([first], tables):
                writer.write_table(written(table.select(first.column_names).cast(first.schema)))
                rows += len(table)
        partial.replace(output)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise UserError(f"cannot write {output}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return rows


def _with_json(table: "pa.Table") -> "pa.Table":
    """The table with lists as JSON: a cell of CSV is a text."""
    import pyarrow as pa

    from trainjob.data.read.rows import as_json, row_number

    columns = zip(table.column_names, table.columns, strict=True)
    return pa.table(
        {name: as_json(each, name, row_number) if pa.types.is_nested(each.type) else each for name, each in columns}
    )
