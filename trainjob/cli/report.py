"""`trainjob report`"""

from pathlib import Path
from typing import Annotated

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import RunName, named_run
from trainjob.cli.output import say
from trainjob.errors import StorageError


def report(
    run: RunName,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write it; report.html in RUN by default, or RUN-report.html here if RUN is read-only.",
        ),
    ] = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Write the report of a run again, finished or not.

    Prints where it is.
    """
    from trainjob.report.render import render
    from trainjob.runs.files import REPORT
    from trainjob.storage import Folder

    folder = named_run(run, context, namespace)
    html = render(folder).encode()
    if output is None:
        try:
            folder.write(REPORT, html)
        except StorageError as error:
            output = Path(f"{run.rstrip('/').rpartition('/')[2]}-{REPORT}")
            say(f"note: {error}; the report is in {output} instead", error=True)
    if output is not None:
        Folder(str(output.parent)).write(output.name, html)
    say(str(output or (folder / REPORT).uri))
