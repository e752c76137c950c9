"""`trainjob compare`"""

import json
from pathlib import Path
from typing import Annotated

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import named_run
from trainjob.cli.output import console, printable_json, say
from trainjob.cli.table import show_table


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN RUN...", help="Two or more runs: folders, or TrainJobs on the cluster.", show_default=False
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it as HTML, with curves, to FILE.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Show what differs between runs, and which is better.

    A run is called better or worse where it was scored on the same rows as the first one, and the 95% interval of the
    difference lies on one side of 0.
    """
    from trainjob.report.compare import compare as read
    from trainjob.report.compare import differences, remarks, render_comparison, score_table, to_json
    from trainjob.storage import Folder

    compared = read([named_run(run, context, namespace) for run in runs])
    if output is not None:
        Folder(str(output.parent)).write(output.name, render_comparison(compared).encode())
        say(str(output))
        return
    if as_json:
        print(printable_json(json.dumps(to_json(compared), indent=2, ensure_ascii=False)))
        return
    names = [run.name for run in compared]
    out = console(highlight=False)
    show_table(out, ("", *names), [(name, *values) for name, values in score_table(compared)], "Scores")
    for remark in remarks(compared):
        say(remark)
    show_table(out, ("", *names), [(path, *values) for path, values in differences(compared)], "What differs")
