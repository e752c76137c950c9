"""`trainjob pull`"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob import interrupts
from trainjob.cli.cluster_options import Context, JobOrRun, Namespace, open_client, repeated
from trainjob.cli.named_run import is_path
from trainjob.cli.output import console, say
from trainjob.client.folders import open_folder, started_run
from trainjob.runs.files import RunFiles

if TYPE_CHECKING:
    from trainjob.runs.pull import OnBytes


def pull(
    name: JobOrRun,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="A new folder, or that of an earlier pull; ./NAME by default.", show_default=False
        ),
    ] = None,
    part: Annotated[
        RunFiles,
        typer.Option("--what", help="The model with the run's scores, the report, or all files of the run."),
    ] = "model",
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Copy a run's model, report or all files to this machine.

    NAME is a TrainJob on a cluster, or a run's folder: s3://, gs:// or a path with a slash. Files are checked against
    the digests that the run has recorded. The same command continues a copy that was interrupted, and copies only what
    has changed.
    """
    if is_path(name):
        source = open_folder(name)
    else:  # also if there is a folder of this name, into which an earlier pull has copied the run
        client = open_client(context, namespace)
        source = started_run(client, client.job(name), repeated(context, namespace))
    from trainjob.runs.pull import pull as copy

    target = folder or Path(os.path.basename(name.rstrip("/")))
    try:
        with _progress_bar(str(target)) as on_progress:
            pulled = copy(source, target, part, on_progress)
    except KeyboardInterrupt:
        say("\nstopped. The same command continues.", error=True)
        raise typer.Exit(interrupts.exit_code()) from None
    from rich.filesize import decimal

    files = f"{pulled.files:,} file{'s' if pulled.files > 1 else ''}, {decimal(pulled.size)}"
    in_place = pulled.files - pulled.copied
    say(f"{source.uri}: {files}" + (f"; {in_place:,} of them in place already" if in_place else ""), error=True)
    say(str(target))


@contextmanager
def _progress_bar(name: str) -> "Generator[OnBytes]":
    """Shows bytes, rate and remaining time on a terminal."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(None), DownloadColumn())
    out = console(stderr=True)
    with Progress(
        *columns, TransferSpeedColumn(), TimeRemainingColumn(), console=out, transient=True, disable=not out.is_terminal
    ) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
