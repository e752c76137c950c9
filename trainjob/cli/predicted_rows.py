"""`trainjob predict` with a model that answers each row."""

import json
import shlex
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.cli.output import console, say
from trainjob.cli.predicted_tables import flat, input_parts, predicted, printable_columns, read, write
from trainjob.errors import UserError, notify
from trainjob.formatting import cut

if TYPE_CHECKING:
    import pyarrow as pa

    from trainjob.baselines.cascade import LanguageModelCascade
    from trainjob.data import Preprocessor
    from trainjob.data.read.rows import Rows
    from trainjob.kinds.input import Where
    from trainjob.kinds.reply import Reply
    from trainjob.predictor import Predictor
    from trainjob.storage import Folder

MAX_TITLE_CHARACTERS = 100
MAX_ROW_CHARACTERS = 300
"""Characters of an example of a row in an error."""


def classify(
    run: "Folder",
    variant: str | None,
    cascade: float | None,
    data: str | None,
    given: Mapping[str, list[Any]],
    output: Path,
) -> None:
    """Shows the answers to the inputs that are `given`, by their noun, or writes those to the rows of `data` to
    `output`."""
    from trainjob.launch.quick_imports import quick_imports

    with quick_imports():
        from trainjob.kinds.input import tell_unknown_categories
        from trainjob.predictor import Predictor

        predictor = Predictor.load(run.uri, run.endpoint, variant)
    noun = predictor.preprocessor.input.noun
    second = None if cascade is None else _cascade(run, predictor.preprocessor, cascade)
    unknown = Counter[str]()
    if data is not None:
        rows = write(_predicted(predictor, _image_column(run), data, output, second, unknown), data, output)
        say(f"{rows:,} predictions written to {output}")
        tell_unknown_categories(unknown, rows)
        for note in second.notes() if second is not None else []:
            say(note)
        return
    values = given[noun] or (given["row"] if noun == "text" else [])
    if not values:
        wrong = ", ".join(f"--{option}" for option, some in given.items() if some)
        raise UserError(
            f"{run.uri} is a model for {noun}s and takes no {wrong}: give {_option(predictor.preprocessor)} or DATA"
        )
    inputs = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    outputs = predictor.outputs(values, where=inputs.__getitem__, unknown=unknown)
    target = predictor.preprocessor.target
    texts = _texts(values, predictor.preprocessor, inputs.__getitem__) if noun == "text" else inputs
    tell_unknown_categories(unknown, len(values))
    captions = [""] * len(inputs)
    if second is not None:
        answers = target.answer(outputs, predictor.model)
        assert answers is not None, "load_model has refused a model without answers"
        captions = _cascade_captions(values, predictor, answers, second)
    _show(inputs, texts, target.replies(outputs, predictor.model), captions)


def _texts(values: list[Any], preprocessor: "Preprocessor", where: "Where") -> list[str]:
    """The text of each row of a model that reads texts."""
    from trainjob.kinds.inputs.text import joined_texts

    columns = preprocessor.input.columns
    return joined_texts(preprocessor.input.table(values, where), columns, where)


def _option(preprocessor: "Preprocessor") -> str:
    """The option by which `trainjob predict` gets an example of a row."""
    example = preprocessor.input.example()
    if "rows" not in example:
        return f"--{preprocessor.input.noun}"
    row = json.dumps(example["rows"][0], ensure_ascii=False)
    return f"--row {shlex.quote(row)}" if len(row) <= MAX_ROW_CHARACTERS else "--row, with a value for each column,"


def _predicted(
    predictor: "Predictor",
    image: str | None,
    data: str,
    output: Path,
    cascade: "LanguageModelCascade | None",
    unknown: Counter[str],
) -> "Iterator[pa.Table]":
    """The rows of `data`, some at a time, with the columns that hold the predictions. Those of an earlier prediction,
    where there are all of several, are replaced; other columns of the same names are renamed, with a Notice. `image` is
    the column of a table that holds the images, where it is known. Counts the cells of unknown categories in `unknown`,
    by column."""
    import pyarrow as pa

    from trainjob.data.read.bad_rows import BadRows
    from trainjob.data.read.image_files import ImageFiles
    from trainjob.data.read.rows import Rows

    inputs, bad = predictor.preprocessor.input, BadRows(data)
    found = inputs.parts(input_parts(data, output), image, read)
    has_labels = not all(isinstance(part, ImageFiles) and part.is_loose for part in found)

    def predict(rows: Rows) -> pa.Table:
        answers = flat(predictor.answers(rows.table, where=rows.where, unknown=unknown))
        columns = printable_columns(rows)
        if not has_labels:
            del columns["label"]
        if cascade is not None:
            answers = _with_cascade(answers, cascade, rows, predictor.classes)
        renamed = {name: _free_name(name, columns) for name in answers.column_names if name in columns}
        if len(renamed) == len(answers.column_names) > 1:
            renamed.clear()  # these are predictions of an earlier time
        if renamed:
            notify(
                "columns of the input have the names of predictions, and are written under others: "
                + ", ".join(f"{name} as {other}" for name, other in renamed.items())
            )
        columns = {renamed.get(name, name): column for name, column in columns.items()}
        return pa.table(columns | dict(zip(answers.column_names, answers.columns, strict=True)))

    batches = (rows for part in found for rows in read(part, inputs.columns, bad.add))
    return predicted(batches, predict, inputs.check, bad)


def _free_name(name: str, taken: Container[str]) -> str:
    while name in taken:
        name = f"input_{name}"
    return name


def _image_column(run: "Folder") -> str | None:
    """The column of images that the run's TrainJob names."""
    from trainjob.runs.files import TRAINJOB
    from trainjob.runs.folder import read_job
    from trainjob.runs.model import run_folder_of

    folder = run_folder_of(run)
    dataset = read_job(folder).spec.dataset if folder.exists(TRAINJOB) else None
    return dataset.image if dataset is not None else None


def _with_cascade(answers: "pa.Table", cascade: "LanguageModelCascade", rows: "Rows", classes: list[str]) -> "pa.Table":
    """The answers of a cascade to rows to which the model gives `answers`. No probability is known of an answer of the
    language model."""
    import pyarrow as pa

    from trainjob.data.read.csv_injection import OF_CLASS, PREDICTION, PROBABILITY
    from trainjob.predictor import probabilities_of

    probabilities = probabilities_of(answers, classes)
    answer = cascade.decide(rows, probabilities)
    columns = dict(zip(answers.column_names, answers.columns, strict=True)) | {
        PREDICTION: pa.array([*classes, None], pa.string()).take(pa.array(answer.predicted)),
        PROBABILITY: pa.array(probabilities.max(axis=1), mask=answer.asked),
        "answered_by": pa.array(["model", "languageModel"]).take(pa.array(answer.asked.astype("int64"))),
    }
    by_class = [name for name in answers.column_names if name.startswith(OF_CLASS)]
    return pa.table(columns).select([PREDICTION, PROBABILITY, "answered_by", *by_class])


def _cascade(run: "Folder", preprocessor: "Preprocessor", threshold: float) -> "LanguageModelCascade":
    from trainjob.kinds import KINDS

    if "languageModel" not in KINDS[preprocessor.kind].baselines:
        noun = KINDS[preprocessor.kind].a_noun
        raise UserError(
            f"--cascade asks a language model, which only classifies texts; {run.uri} is {noun}: leave it out"
        )
    from trainjob.baselines.cascade import LanguageModelCascade
    from trainjob.runs.model import run_folder_of

    if not preprocessor.target.chooses_one_class:
        raise UserError(
            f"--cascade asks a language model for one class, and {run.uri} gives each row several labels: leave it out"
        )
    return LanguageModelCascade(run_folder_of(run), threshold)


def _cascade_captions(
    values: list[Any], predictor: "Predictor", answers: "pa.Table", cascade: "LanguageModelCascade"
) -> list[str]:
    """The cascade's answers to the rows, in words. `answers` are the model's."""
    from trainjob.data.read.rows import RowLocation, Rows, row_number
    from trainjob.predictor import probabilities_of

    table = predictor.preprocessor.input.table(values, row_number)
    rows = Rows(table, lambda index: RowLocation(row_number(index)))
    answer = cascade.decide(rows, probabilities_of(answers, predictor.classes))
    names = [*predictor.classes, "no class"]
    return [
        f"{'languageModel' if asked else 'model'}: {names[number]}"
        for number, asked in zip(answer.predicted, answer.asked, strict=True)
    ]


def _show(inputs: list[str], texts: list[str], replies: "Sequence[Reply]", captions: list[str]) -> None:
    """A table for each input, which has a text, with its caption below."""
    from rich.table import Table
    from rich.text import Text

    out = console()
    for name, text, reply, caption in zip(inputs, texts, replies, captions, strict=True):
        out.print(Text(cut(name, MAX_TITLE_CHARACTERS), "table.title"), soft_wrap=True)
        table = Table()
        for number, heading in enumerate(reply.headings):
            table.add_column(heading, justify="left" if number < reply.names else "right")
        for cells in reply.lines(text):
            table.add_row(*map(Text, cells))
        out.print(table)
        if caption:
            out.print(Text(caption))
