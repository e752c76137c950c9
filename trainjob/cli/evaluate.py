"""`trainjob evaluate`"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob.cli.options import Variant
from trainjob.cli.output import console, printable_json
from trainjob.errors import UserError, notify
from trainjob.runs.files import FITTED, TRAINJOB

if TYPE_CHECKING:
    from trainjob.api import TrainJob
    from trainjob.data.bad_rows import BadRows
    from trainjob.evaluation import ClassificationScores, LanguageScores, Scores
    from trainjob.storage import Folder


def evaluate(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's folder: a path, s3:// or gs://.", show_default=False)
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Rows with the columns of the training rows, labels included.", show_default=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, confusion matrix included.")] = False,
    variant: Variant = None,
) -> None:
    """Score a run's best model on rows of the training rows' kind."""
    from trainjob.runs.model import is_language_model, model_folder
    from trainjob.storage import Folder

    folder = Folder(run)
    is_language = is_language_model(model_folder(folder, variant))
    scores = _language_scores(folder, data) if is_language else _scores(folder, variant, data)
    if not is_language:
        _tell_of_precision(folder)
    if as_json:
        print(printable_json(scores.model_dump_json(by_alias=True, indent=2)))
    else:
        _show(scores)


def _scores(folder: "Folder", variant: str | None, data: str) -> "ClassificationScores":
    import numpy as np
    import torch

    from trainjob.api import Source
    from trainjob.data import Fitted
    from trainjob.data.bad_rows import BadRows
    from trainjob.data.fitting import usable_rows
    from trainjob.data.spec_parts import parts_of
    from trainjob.evaluation import Confusion, classification_scores
    from trainjob.kinds.targets.class_losses import sample_losses
    from trainjob.predictor import Predictor
    from trainjob.runs.folder import read_job
    from trainjob.runs.model import run_folder_of

    run = run_folder_of(folder)
    job = read_job(run)
    predictor = Predictor.load(folder.uri, variant=variant)
    losses = sample_losses(job.spec.model, predictor.preprocessor)
    fitted = replace(Fitted.load(run / FITTED), preprocessor=predictor.preprocessor)
    bad, drops = BadRows(data), _drops(job)
    true, predicted, loss_sum = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0.0
    for rows, labels in usable_rows(parts_of(job.spec, Source(uri=data)), fitted, bad.add):
        if bad.count and not drops:  # the others are only looked at
            continue
        logits = predictor.logits(rows.table, where=rows.where)
        loss_sum += losses(logits, torch.from_numpy(labels)).double().sum().item()
        true.append(labels)
        predicted.append(logits.argmax(dim=1).numpy())
    confusion = Confusion.of(np.concatenate(true), np.concatenate(predicted))
    _tell(bad, drops)
    if not confusion.rows:
        raise UserError(f"{data} holds no rows")
    return classification_scores(confusion, loss_sum, predictor.classes)


def _tell_of_precision(folder: "Folder") -> None:
    """Gives a Notice where the run has scored its model in another precision."""
    from trainjob.runs.model import run_folder_of
    from trainjob.runs.summary import read_summary

    summary = read_summary(run_folder_of(folder))
    if summary is not None and summary.precision not in (None, "float32"):
        notify(
            f"scored in float32, in which `trainjob predict` works; the run scored in {summary.precision}, so the last "
            "digits in its report may differ"
        )


def _language_scores(folder: "Folder", data: str) -> "LanguageScores":
    import numpy as np
    import pyarrow as pa

    from trainjob.api import Source
    from trainjob.data import Examples
    from trainjob.data.bad_rows import BadRows, sound_rows
    from trainjob.data.source import parts
    from trainjob.generator import TextGenerator
    from trainjob.kinds.causal_lm.network import score_rows
    from trainjob.runs.folder import read_job

    bad, drops = BadRows(data), folder.exists(TRAINJOB) and _drops(read_job(folder))
    generator = TextGenerator.load(folder.uri)
    preprocessor = generator.preprocessor

    def examples() -> Iterator[Examples]:
        layout = preprocessor.layout
        for part in parts(Source(uri=data), None, labelled=False, nested=layout.nested, optional=layout.optional):
            for each in part.read(preprocessor.columns, bad.add):
                rows = each.take(sound_rows(each, preprocessor.check, bad.add))
                if bad.count and not drops:  # the others are only looked at
                    continue
                values = preprocessor.transform(rows.table, rows.where)
                yield Examples.from_table(pa.table({"values": values, "label": np.zeros(len(values), np.int64)}))
        _tell(bad, drops)

    scores = score_rows(generator.model, preprocessor, examples(), generator.device)
    if not scores.tokens:
        raise UserError(f"{data} holds no rows")
    return scores


def _drops(job: "TrainJob") -> bool:
    return job.spec.dataset is not None and job.spec.dataset.on_bad_rows == "drop"


def _tell(bad: "BadRows", drops: bool) -> None:
    """Raises DataError for rows that cannot be used, or gives a Notice where the run drops them."""
    from trainjob.data.bad_rows import bad_rows_error

    if bad.count and not drops:
        raise bad_rows_error({"": bad}, {}, advice="Correct these rows.")
    if bad.count:
        count = "1 row" if bad.count == 1 else f"{bad.count:,} rows"
        notify(f"{bad.source}: left out {count}: {'; '.join(bad.lines())}")


def _show(scores: "Scores") -> None:
    from rich.table import Table
    from rich.text import Text

    out = console(highlight=False)
    out.print(scores.headline())
    if (found := scores.table()) is None:
        return
    table = Table()
    for number, heading in enumerate(found.headings):
        table.add_column(heading, justify="right" if number else "left")
    for name, *values in found.lines:
        table.add_row(Text(name), *values)
    out.print(table)
