"""`trainjob evaluate`"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob.cli.options import Variant
from trainjob.cli.output import console, printable_json
from trainjob.errors import UserError
from trainjob.runs.files import FITTED

if TYPE_CHECKING:
    from trainjob.evaluation import LanguageScores, Scores
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
    from trainjob.evaluation import Scores
    from trainjob.runs.model import is_language_model, model_folder
    from trainjob.storage import Folder

    folder = Folder(run)
    is_language = is_language_model(model_folder(folder, variant))
    scores = _language_scores(folder, data) if is_language else _scores(folder, variant, data)
    if as_json:
        print(printable_json(scores.model_dump_json(by_alias=True, indent=2)))
    elif isinstance(scores, Scores):
        _show(scores)
    else:
        said = f"perplexity {scores.perplexity:.4f}, loss {scores.loss:.4f} in nats for each token"
        console(highlight=False).print(f"{scores.tokens:,} tokens: {said}")


def _scores(folder: "Folder", variant: str | None, data: str) -> "Scores":
    import numpy as np
    import torch

    from trainjob.api import Source
    from trainjob.data import Fitted
    from trainjob.data.fitting import parts_of
    from trainjob.data.labels import label_indices
    from trainjob.data.reading import read_all
    from trainjob.evaluation import Confusion, scores
    from trainjob.models import sample_losses
    from trainjob.predictor import Predictor
    from trainjob.runs.folder import read_job
    from trainjob.runs.model import run_folder_of

    run = run_folder_of(folder)
    job = read_job(run)
    predictor = Predictor.load(folder.uri, variant=variant)
    preprocessor, classes = predictor.preprocessor, predictor.classes
    losses = sample_losses(job.spec.model, preprocessor)
    label = Fitted.load(run / FITTED).label
    assert label is not None
    true, predicted, loss_sum = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0.0
    for rows in read_all(parts_of(job.spec, Source(uri=data)), [*preprocessor.columns, label]):
        labels = label_indices(rows, label, classes)
        logits = predictor.logits(rows.table, where=rows.where)
        loss_sum += losses(logits, torch.from_numpy(labels)).double().sum().item()
        true.append(labels)
        predicted.append(logits.argmax(dim=1).numpy())
    confusion = Confusion.of(np.concatenate(true), np.concatenate(predicted))
    if not confusion.rows:
        raise UserError(f"{data} holds no rows")
    return scores(confusion, loss_sum, classes)


def _language_scores(folder: "Folder", data: str) -> "LanguageScores":
    import numpy as np
    import pyarrow as pa

    from trainjob.api import Source
    from trainjob.data import Examples
    from trainjob.data.source import parts
    from trainjob.generator import TextGenerator
    from trainjob.models.causal import score_rows

    generator = TextGenerator.load(folder.uri)
    preprocessor = generator.preprocessor

    def examples() -> Iterator[Examples]:
        layout = preprocessor.layout
        for part in parts(Source(uri=data), None, labelled=False, nested=layout.nested, optional=layout.optional):
            for rows in part.read(preprocessor.columns):
                values = preprocessor.transform(rows.table, rows.where)
                yield Examples.from_table(pa.table({"values": values, "label": np.zeros(len(values), np.int64)}))

    scores = score_rows(generator.model, preprocessor, examples(), generator.device)
    if not scores.tokens:
        raise UserError(f"{data} holds no rows")
    return scores


def _show(scores: "Scores") -> None:
    from rich.table import Table
    from rich.text import Text

    out = console(highlight=False)
    out.print(
        f"{scores.rows:,} rows: accuracy {scores.accuracy:.4f}, macro F1 {scores.macro.f1:.4f}, loss {scores.loss:.4f}"
    )
    table = Table()
    table.add_column("class")
    for name in ("rows", "precision", "recall", "F1"):
        table.add_column(name, justify="right")
    averages = [("macro average", scores.rows, scores.macro), ("weighted average", scores.rows, scores.weighted)]
    for name, rows, line in [*((one.name, one.rows, one) for one in scores.per_class), *averages]:
        table.add_row(Text(name), f"{rows:,}", f"{line.precision:.4f}", f"{line.recall:.4f}", f"{line.f1:.4f}")
    out.print(table)
