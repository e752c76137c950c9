"""`trainjob compare`"""

import json
from pathlib import Path
from typing import Annotated

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import named_run
from trainjob.cli.output import WIDEST, console, printable_json, say


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

    A run is called better or worse where it was scored on the same rows as the first one, and the 95 % interval of the
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
    _show("Scores", names, score_table(compared))
    for remark in remarks(compared):
        say(remark)
    _show("What differs", names, differences(compared))


def _show(title: str, names: list[str], lines: list[tuple[str, list[str]]]) -> None:
    """A table with a column for each run; where it is too wide, a paragraph for each line with a line for each run."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    for heading in ("", *names):
        table.add_column(Text(heading))
    for line, values in lines:
        table.add_row(Text(line), *map(Text, values))
    out = console(highlight=False)
    if out.measure(table, options=out.options.update_width(WIDEST)).maximum <= out.width:
        out.print(table)
        return
    say(title)
    width = max(map(len, names))
    for line, values in lines:
        say(f"  {line}")
        for name, value in zip(names, values, strict=True):
            say(f"    {name:<{width}}  {value}")
