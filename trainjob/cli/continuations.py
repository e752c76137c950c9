"""`trainjob predict` with a language model."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.cli.output import say
from trainjob.cli.predicted_tables import input_parts, predicted, printable_columns, read, write

if TYPE_CHECKING:
    import pyarrow as pa

    from trainjob.generator import TextGenerator
    from trainjob.storage import Folder


def continue_texts(run: "Folder", data: str | None, texts: list[str], output: Path, sampling: dict[str, Any]) -> None:
    """Continues the texts, or the rows of `data`, with a language model."""
    from trainjob.launch.quick_imports import quick_imports

    with quick_imports():
        from trainjob.generator import TextGenerator

        generator = TextGenerator.load(run.uri, run.endpoint)
    if data is not None:
        rows = write(_continued(generator, data, output, sampling), data, output)
        say(f"{rows:,} continuations written to {output}")
        return
    for text, continuation in zip(texts, generator.generate(texts, **sampling), strict=True):
        say(continuation if generator.tokens.form == "messages" else text + continuation)


def _continued(generator: "TextGenerator", data: str, output: Path, sampling: dict[str, Any]) -> "Iterator[pa.Table]":
    """The rows of `data`, some at a time, with the column `continuation`; an older one is replaced."""
    import pyarrow as pa

    from trainjob.data.read.bad_rows import BadRows
    from trainjob.data.read.rows import Rows, found_columns

    layout, bad = generator.tokens.layout, BadRows(data)
    columns = layout.prompt_columns
    needed = [name for name in columns if name not in layout.optional]

    def batches() -> Iterator[Rows]:
        for part in input_parts(data, output, layout.nested, layout.optional):
            for rows in read(part, needed, bad.add):
                found_columns(columns, rows.table.column_names, part.uri, layout.optional)
                yield rows

    def predict(rows: Rows) -> pa.Table:
        texts = generator.generate(layout.prompts(rows.table, rows.where), where=rows.where, **sampling)
        return pa.table(printable_columns(rows) | {"continuation": texts})

    return predicted(batches(), predict, lambda rows: layout.prompts(rows.table, rows.where), bad)
