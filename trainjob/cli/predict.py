"""`trainjob predict`"""

import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainjob.cli.options import Variant
from trainjob.cli.output import console, say
from trainjob.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from trainjob.baselines.cascade import Decided, LanguageModelCascade
    from trainjob.data.rows import Part, Rows
    from trainjob.generator import TextGenerator
    from trainjob.predictor import Predictor

FORMATS = (".csv", ".parquet")
LONGEST_TITLE = 100
SECONDS_BETWEEN_LINES = 10.0


def predict(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's, a model's or a checkpoint's folder.", show_default=False)
    ],
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Rows to predict: csv, jsonl, parquet, an image folder or IDX files."),
    ] = None,
    text: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="A text; as often as you like.")] = None,
    image: Annotated[list[str] | None, typer.Option(metavar="FILE", help="An image; as often as you like.")] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Where the predictions for DATA go: .csv or .parquet."),
    ] = Path("predictions.csv"),
    cascade: Annotated[
        float | None,
        typer.Option(
            metavar="THRESHOLD",
            help="Ask the language model of spec.baselines where the model's prediction is less probable than this.",
        ),
    ] = None,
    variant: Variant = None,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="Language models: most tokens to write. [default: 64]", show_default=False)
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Language models: 0 takes the most probable token; the higher, the more varied. [default: 0]",
            show_default=False,
        ),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(help="Language models: draw from the most probable tokens with this share. [default: 1]"),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Language models: end where this is written; as often as you like."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Language models: seeds the drawing. [default: 0]")] = None,
) -> None:
    """Apply a trained model to rows, texts or images.

    A language model continues texts: DATA's rows are written to FILE with the column `continuation`.

    DATA's rows are written to FILE with the predicted class, its probability, and the probability of each class; of
    a cascade also with who answered. In CSV, a text that a spreadsheet would take for a formula begins with an
    apostrophe; trainjob reads such a file without it.
    """
    if sum(choice is not None for choice in (data, text or None, image or None)) != 1:
        raise UserError("give one of DATA, --text and --image")
    if data is not None:
        _check_output(output)
    if cascade is not None and not 0 <= cascade <= 1:
        raise UserError(f"--cascade {cascade}: a threshold is a probability, from 0 to 1")

    from trainjob.runs.model import is_language_model, model_folder
    from trainjob.storage import Folder

    sampling = {
        "max_new_tokens": max_new_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "stop": tuple(stop) if stop else None,
        "seed": seed,
    }
    sampling = {name: value for name, value in sampling.items() if value is not None}
    if is_language_model(model_folder(Folder(run), variant)):
        if image or cascade is not None:
            raise UserError(f"{run} is a language model: give --text or DATA, and no --cascade")
        _continue(run, data, text or [], output, sampling)
        return
    if sampling:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sampling)
        raise UserError(f"{run} is no language model, which {names} would be for")

    from trainjob.predictor import Predictor

    predictor = Predictor.load(run, variant=variant)
    kind = predictor.preprocessor.kind
    second = None if cascade is None else _cascade(run, kind, cascade)
    if data is not None:
        rows = _write(_counted(_predicted(predictor, data, second)), data, output)
        say(f"{rows:,} predictions written to {output}")
        for note in second.notes() if second is not None else []:
            say(note)
        return
    if (kind == "text") != bool(text):
        raise UserError(f"{run} is a model for {kind}s: give --{kind} or DATA")
    inputs = text or image or []
    logits = predictor.logits(inputs, where=lambda index: inputs[index])
    probabilities = predictor.model.probabilities(logits).numpy()
    said = _said(inputs, predictor, probabilities, second) if second is not None else [""] * len(inputs)
    _show(inputs, predictor.classes, probabilities, said)


def _continue(run: str, data: str | None, texts: list[str], output: Path, sampling: dict[str, Any]) -> None:
    """Has a language model continue the texts, or the rows of `data`."""
    from trainjob.generator import TextGenerator

    generator = TextGenerator.load(run)
    if data is not None:
        rows = _write(_counted(_continued(generator, data, sampling)), data, output)
        say(f"{rows:,} continuations written to {output}")
        return
    for text, continuation in zip(texts, generator.generate(texts, **sampling), strict=True):
        say(text + continuation)


def _continued(generator: "TextGenerator", data: str, sampling: dict[str, Any]) -> "Iterator[pa.Table]":
    """The rows of `data`, some at a time, with the column `continuation`; an older one is replaced."""
    import pyarrow as pa

    from trainjob.api import Source
    from trainjob.data.rows import check_columns
    from trainjob.data.source import parts
    from trainjob.data.text import joined_texts

    columns = generator.preprocessor.columns
    for part in parts(Source(uri=data), None, labelled=False):
        for rows in _read(part, columns):
            check_columns(columns, rows.table.column_names, part.uri)
            texts = generator.generate(joined_texts(rows.table, columns, rows.where), **sampling)
            yield pa.table(_shown(rows) | {"continuation": texts})


def _check_output(output: Path) -> None:
    if output.suffix not in FORMATS:
        raise UserError(f"--output {output}: must end in {' or '.join(FORMATS)}")
    if output.is_dir():
        raise UserError(f"cannot write {output}: it is a folder")
    if not output.parent.is_dir():
        raise UserError(f"cannot write {output}: there is no folder {output.parent}")


def _cascade(run: str, kind: str, threshold: float) -> "LanguageModelCascade":
    if kind != "text":
        raise UserError(f"--cascade asks a language model, which sorts texts; {run} is a model for {kind}s")
    from trainjob.baselines.cascade import LanguageModelCascade
    from trainjob.runs.model import run_folder_of
    from trainjob.storage import Folder

    return LanguageModelCascade(run_folder_of(Folder(run)), threshold)


def _said(
    inputs: list[str], predictor: "Predictor", probabilities: "np.ndarray", cascade: "LanguageModelCascade"
) -> list[str]:
    """What the cascade answers to each text, in words."""
    import pyarrow as pa

    from trainjob.data.rows import Rows

    columns = dict.fromkeys(predictor.preprocessor.columns, [""] * len(inputs))
    columns[predictor.preprocessor.columns[0]] = inputs
    decided = cascade.decide(Rows(pa.table(columns), lambda index: inputs[index]), probabilities)
    names = [*predictor.classes, "no class"]
    return [
        f"{'languageModel' if asked else 'model'}: {names[number]}"
        for number, asked in zip(decided.predicted, decided.asked, strict=True)
    ]


def _show(inputs: list[str], classes: list[str], probabilities: "np.ndarray", said: list[str]) -> None:
    """A table for each input, most probable class first, with what is `said` of it below."""
    from rich.table import Table
    from rich.text import Text

    out = console()
    for name, row, caption in zip(inputs, probabilities, said, strict=True):
        table = Table(title=Text(name[:LONGEST_TITLE]), title_justify="left")
        table.add_column("class")
        table.add_column("probability", justify="right")
        for index in (-row).argsort(kind="stable"):
            table.add_row(Text(classes[index]), f"{row[index]:.4f}")
        out.print(table)
        if caption:
            out.print(Text(caption))


def _predicted(predictor: "Predictor", data: str, cascade: "LanguageModelCascade | None") -> "Iterator[pa.Table]":
    """The rows of `data`, some at a time, with the columns that hold the predictions; older ones are replaced."""
    import pyarrow as pa

    from trainjob.api import Source
    from trainjob.data.image_files import ImageFiles
    from trainjob.data.source import parts

    found = parts(Source(uri=data), None, labelled=False)
    has_labels = not all(isinstance(part, ImageFiles) and part.is_loose for part in found)
    for part in found:
        for rows in _read(part, predictor.preprocessor.columns):
            probabilities = predictor.model.probabilities(predictor.logits(rows.table, where=rows.where)).numpy()
            columns = _shown(rows)
            if not has_labels:
                del columns["label"]
            decided = cascade.decide(rows, probabilities) if cascade is not None else None
            yield pa.table(columns | _columns(probabilities, predictor.classes, decided))


def _columns(probabilities: "np.ndarray", classes: list[str], decided: "Decided | None") -> "dict[str, Any]":
    """What is predicted for rows with `probabilities` [n, C]. Of a language model's answer no probability is known."""
    import pyarrow as pa

    from trainjob.data.formulas import OF_CLASS, PREDICTION, PROBABILITY

    predicted = probabilities.argmax(axis=1) if decided is None else decided.predicted
    columns: dict[str, Any] = {
        PREDICTION: pa.array([*classes, None], pa.string()).take(pa.array(predicted)),
        PROBABILITY: pa.array(probabilities.max(axis=1), mask=None if decided is None else decided.asked),
    }
    if decided is not None:
        columns["answered_by"] = pa.array(["model", "languageModel"]).take(pa.array(decided.asked.astype("int64")))
    return columns | {f"{OF_CLASS}{name}": probabilities[:, index] for index, name in enumerate(classes)}


def _read(part: "Part", needed: list[str]) -> "Iterator[Rows]":
    """All columns, `needed` in any case; those of CSV and JSON Lines as text, as in training: 007 stays 007."""
    from trainjob.data.tables import CSVFile, JSONLinesFile

    if not isinstance(part, CSVFile | JSONLinesFile):
        return part.read(None)
    names = part.names()
    return part.read(names + [name for name in needed if name not in names])


def _counted(tables: "Iterator[pa.Table]") -> "Iterator[pa.Table]":
    """The tables, while standard error tells how many of their rows are done."""

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


def _shown(rows: "Rows") -> "dict[str, Any]":
    """The columns that fit into a table: no lists or objects, and of an image where it comes from."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, column in zip(rows.table.column_names, rows.table.columns, strict=True):
        if name == "image" and not pa.types.is_string(column.type):
            columns[name] = [rows.where(index) for index in range(len(rows.table))]
        elif not pa.types.is_nested(column.type):
            columns[name] = column
    return columns


def _write(tables: "Iterator[pa.Table]", data: str, output: Path) -> int:
    """Write the tables one after the other, and return their rows. `output` appears when all are written."""
    import pyarrow as pa
    from pyarrow.csv import CSVWriter
    from pyarrow.parquet import ParquetWriter

    from trainjob.data.formulas import escaped

    first = next(tables, None)
    if first is None:
        raise UserError(f"{data} holds no rows")
    rows, is_csv = 0, output.suffix == ".csv"
    partial = output.with_name(f".{output.name}.partial")
    try:
        written = escaped if is_csv else (lambda table: table)
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
