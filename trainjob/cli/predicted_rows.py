"""`trainjob predict` with a classifier."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.cli.output import console, say
from trainjob.cli.predicted_tables import parts_of, read, shown, write
from trainjob.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from trainjob.baselines.cascade import Decided, LanguageModelCascade
    from trainjob.predictor import Predictor

LONGEST_TITLE = 100


def classify(
    run: str,
    variant: str | None,
    cascade: float | None,
    data: str | None,
    texts: list[str],
    images: list[str],
    output: Path,
) -> None:
    """Shows the classes of texts or images, or writes those of the rows of `data` to `output`."""
    from trainjob.predictor import Predictor

    predictor = Predictor.load(run, variant=variant)
    kind = predictor.preprocessor.input.noun
    second = None if cascade is None else _cascade(run, kind, cascade)
    if data is not None:
        rows = write(_predicted(predictor, _image_column(run), data, output, second), data, output)
        say(f"{rows:,} predictions written to {output}")
        for note in second.notes() if second is not None else []:
            say(note)
        return
    if (kind == "text") != bool(texts):
        raise UserError(f"{run} is a model for {kind}s: give --{kind} or DATA")
    inputs = texts or images
    logits = predictor.logits(inputs, where=lambda index: inputs[index])
    probabilities = predictor.model.probabilities(logits).numpy()
    said = _said(inputs, predictor, probabilities, second) if second is not None else [""] * len(inputs)
    _show(inputs, predictor.classes, probabilities, said)


def _predicted(
    predictor: "Predictor", image: str | None, data: str, output: Path, cascade: "LanguageModelCascade | None"
) -> "Iterator[pa.Table]":
    """The rows of `data`, some at a time, with the columns that hold the predictions; older ones are replaced. `image`
    is the column of a table that holds the images, where it is known."""
    import pyarrow as pa

    from trainjob.data.image_files import IDXFiles, ImageFiles
    from trainjob.data.image_tables import images_of_tables

    found = parts_of(data, output)
    if predictor.preprocessor.input.noun == "image" and not isinstance(found[0], ImageFiles | IDXFiles):
        found = images_of_tables(
            found, None, image, None, labelled=False, read=lambda part, columns, _: read(part, columns)
        )
    has_labels = not all(isinstance(part, ImageFiles) and part.is_loose for part in found)
    for part in found:
        for rows in read(part, predictor.preprocessor.input.columns):
            probabilities = predictor.model.probabilities(predictor.logits(rows.table, where=rows.where)).numpy()
            columns = shown(rows)
            if not has_labels:
                del columns["label"]
            decided = cascade.decide(rows, probabilities) if cascade is not None else None
            yield pa.table(columns | _columns(probabilities, predictor.classes, decided))


def _image_column(run: str) -> str | None:
    """The column of images that the run's TrainJob names."""
    from trainjob.runs.files import TRAINJOB
    from trainjob.runs.folder import read_job
    from trainjob.runs.model import run_folder_of
    from trainjob.storage import Folder

    folder = run_folder_of(Folder(run))
    dataset = read_job(folder).spec.dataset if folder.exists(TRAINJOB) else None
    return dataset.image if dataset is not None else None


def _columns(probabilities: "np.ndarray", classes: list[str], decided: "Decided | None") -> "dict[str, Any]":
    """What is predicted for rows with `probabilities` [n, C]. Of a language model's answer no probability is known."""
    import pyarrow as pa

    from trainjob.data.csv_injection import OF_CLASS, PREDICTION, PROBABILITY

    predicted = probabilities.argmax(axis=1) if decided is None else decided.predicted
    columns: dict[str, Any] = {
        PREDICTION: pa.array([*classes, None], pa.string()).take(pa.array(predicted)),
        PROBABILITY: pa.array(probabilities.max(axis=1), mask=None if decided is None else decided.asked),
    }
    if decided is not None:
        columns["answered_by"] = pa.array(["model", "languageModel"]).take(pa.array(decided.asked.astype("int64")))
    return columns | {f"{OF_CLASS}{name}": probabilities[:, index] for index, name in enumerate(classes)}


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

    from trainjob.data.rows import Place, Rows

    columns = dict.fromkeys(predictor.preprocessor.input.columns, [""] * len(inputs))
    columns[predictor.preprocessor.input.columns[0]] = inputs
    decided = cascade.decide(Rows(pa.table(columns), lambda index: Place(inputs[index])), probabilities)
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
