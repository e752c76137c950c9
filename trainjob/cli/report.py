"""`trainjob report`"""

from pathlib import Path
from typing import Annotated

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import RunName, named_run
from trainjob.cli.output import say


def report(
    run: RunName,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it; report.html in RUN by default."),
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
        folder.write(REPORT, html)
    else:
        Folder(str(output.parent)).write(output.name, html)
    say(str(output or (folder / REPORT).uri))
