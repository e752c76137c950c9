"""`trainjob predict`"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.continuations import continue_texts
from trainjob.cli.named_run import RunName, named_run
from trainjob.cli.options import VariantOption
from trainjob.cli.predicted_rows import classify
from trainjob.cli.predicted_tables import check_output
from trainjob.errors import UserError


def predict(
    run: RunName,
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Rows to predict: csv, jsonl, parquet, an image folder or IDX files."),
    ] = None,
    text: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="A text; may be repeated.")] = None,
    image: Annotated[list[str] | None, typer.Option(metavar="FILE", help="An image; may be repeated.")] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JSON", help='A row of a table, such as \'{"age": 41, "city": "Oslo"}\'; may be repeated.'
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the predictions for DATA to this file: .csv or .parquet."
        ),
    ] = Path("predictions.csv"),
    cascade: Annotated[
        float | None,
        typer.Option(
            metavar="THRESHOLD",
            help="Ask the language model of spec.baselines where the model's prediction is less probable than this.",
        ),
    ] = None,
    variant: VariantOption = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, help="Language models: maximum number of tokens to generate. [default: 64]", show_default=False
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Language models: 0 always takes the most probable token; higher values vary more. [default: 0]",
            show_default=False,
        ),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            help="Language models: sample from the most probable tokens with this total probability. [default: 1]"
        ),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Language models: stop at this text; may be repeated."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Language models: seed for sampling. [default: 0]")] = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Apply a trained model to rows, texts or images.

    A language model continues texts: DATA's rows are written to FILE with the column `continuation`.

    DATA's rows are written to FILE with the predicted class, its probability, and the probability of each class; of
    a cascade also with who answered. In CSV, a text that a spreadsheet would take for a formula begins with an
    apostrophe; trainjob reads such a file without it.
    """
    if sum(choice is not None for choice in (data, text or None, image or None, row or None)) != 1:
        raise UserError("give one of DATA, --text, --image and --row")
    given: dict[str, list[Any]] = {"text": text or [], "image": image or [], "row": [_row(each) for each in row or []]}
    if data is not None:
        check_output(output)
    if cascade is not None and not 0 <= cascade <= 1:
        raise UserError(f"--cascade {cascade}: the threshold must be a probability, from 0 to 1")

    from trainjob.runs.model import is_language_model, model_folder

    folder = named_run(run, context, namespace)
    sampling = {
        "max_new_tokens": max_new_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "stop": tuple(stop) if stop else None,
        "seed": seed,
    }
    sampling = {name: value for name, value in sampling.items() if value is not None}
    if is_language_model(model_folder(folder, variant)):
        if image or row or cascade is not None:
            raise UserError(f"{run} is a language model: give --text or DATA, without --cascade")
        continue_texts(folder, data, text or [], output, sampling)
        return
    if sampling:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in sampling)
        raise UserError(f"{run} is not a language model, which alone generates text: leave {names} out")

    classify(folder, variant, cascade, data, given, output)


def _row(text: str) -> dict[str, Any]:
    """A row of a table."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UserError(f"--row {text}: is not JSON: {error}") from None
    if not isinstance(found, dict) or any(isinstance(value, (dict, list)) for value in found.values()):
        raise UserError(f'--row {text}: must be an object of columns and values, such as {{"age": 41}}')
    return found
