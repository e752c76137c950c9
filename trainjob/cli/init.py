"""`trainjob init`"""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from trainjob.cli.output import printable, say
from trainjob.errors import UserError


def init(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="Training rows: a table, or a folder of tables or images.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, not to the terminal.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="The kind of model, such as tableClassifier.", show_default=False)
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="The column with the label. Several times: columns of 0 and 1, one for each label.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Propose a TrainJob for some data.

    The kind of model and the columns are chosen by the first rows, and the TrainJob is tried on all rows. What was
    guessed, left out or is unusual is in its comments.
    """
    if output is not None and output.is_dir():
        raise UserError(f"cannot write {output}: it is a folder")
    if output is not None and output.exists() and not force:
        raise UserError(f"{output} exists: --force replaces it")
    from trainjob.cli.progress import preparing
    from trainjob.driver.propose import proposed

    folder = Path.cwd() if output is None else output.parent
    with preparing("init"):
        text = proposed(data, kind, label or [], folder)
    if output is None:
        print(printable(text), end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}") from error
    say(f"{output} proposes a TrainJob: read its comments, then `trainjob run {shlex.quote(str(output))}`")
