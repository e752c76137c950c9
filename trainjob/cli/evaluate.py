"""`trainjob evaluate`"""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import RunName, named_run
from trainjob.cli.options import VariantOption
from trainjob.cli.output import console, printable_json

if TYPE_CHECKING:
    from trainjob.evaluation import Scores


def evaluate(
    run: RunName,
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Rows with the columns of the training rows, labels included.", show_default=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, confusion matrix included.")] = False,
    variant: VariantOption = None,
    on_bad_rows: Annotated[
        Literal["fail", "drop"] | None,
        typer.Option(
            help="What to do with rows that cannot be scored, such as those of labels that the model has not learned: "
            "fail names them, drop leaves them out. By default as `dataset.onBadRows` of the run.",
            show_default=False,
        ),
    ] = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Score a run's best model on rows of the training rows' kind.

    It computes in the precision in which the run was scored.
    """
    from trainjob.launch.quick_imports import quick_imports

    with quick_imports():
        from trainjob.evaluate import evaluate as score

    scores = score(named_run(run, context, namespace), data, variant, on_bad_rows)
    if as_json:
        print(printable_json(scores.model_dump_json(by_alias=True, indent=2)))
    else:
        _show(scores)


def _show(scores: "Scores") -> None:
    from trainjob.cli.table import show_table

    out = console(highlight=False)
    out.print(scores.headline())
    if (found := scores.table()) is None:
        return
    show_table(out, found.headings, found.lines)
