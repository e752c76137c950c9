"""`trainjob validate`"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob.cli.options import Overrides, TrainJobFile
from trainjob.cli.output import say

if TYPE_CHECKING:
    from trainjob.api import TrainJob
    from trainjob.driver.check import CheckedData


def validate(
    file: TrainJobFile,
    overrides: Overrides,
    data: Annotated[
        bool,
        typer.Option("--data", help="Also read the rows, as a run does before training, and show what they contain."),
    ] = False,
) -> None:
    """Show all mistakes in a TrainJob, with field and line.

    With --data, those in its rows, too.
    """
    from trainjob.api.load import load_trainjob
    from trainjob.api.unused_fields import tell_of_unused_fields

    job = load_trainjob(file, overrides)
    say(f"{file}: TrainJob {job.metadata.name} is valid")
    tell_of_unused_fields(job)
    if data:
        _check_data(job)


def _check_data(job: "TrainJob") -> None:
    from trainjob.cli.progress import preparing
    from trainjob.data.first_pass.fitting import tell_of_data
    from trainjob.driver.check import check_data

    with preparing(job.metadata.name):
        found = check_data(job)
    say("\n".join(_lines(found)))
    if found.fitted is not None:
        tell_of_data(found.fitted)


def _lines(found: "CheckedData") -> Iterator[str]:
    for name, rows in found.rows.items():
        aside = ", set aside from the training rows" if name == "validation" and found.is_split else ""
        yield f"{name}: {rows:,} rows{aside}"
    if found.fitted is not None and (labels := found.fitted.preprocessor.target.in_words()):
        yield labels
