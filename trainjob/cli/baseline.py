"""`trainjob baseline`"""

import re
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import RunName, changeable_run
from trainjob.cli.options import Overrides
from trainjob.cli.output import console, printable_json
from trainjob.errors import UserError, listed
from trainjob.kinds import KINDS
from trainjob.runs.files import TRAINJOB

if TYPE_CHECKING:
    from trainjob.api import TrainJob
    from trainjob.runs.comparison import Comparison


def baseline(
    run: RunName,
    overrides: Overrides,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Compare a finished run's model with baselines.

    The baselines are those of spec.baselines, or the usual ones where it names none; --set changes fields of
    spec.baselines, which the run keeps. The report is written again.
    """
    from trainjob.api.defaults import usual_baselines
    from trainjob.baselines.compare import compare_with_baselines
    from trainjob.report.render import write_report
    from trainjob.runs.contents import read_contents
    from trainjob.runs.folder import replace_baselines
    from trainjob.runs.lock import locked

    folder = changeable_run(run, context, namespace, "baseline")
    contents = read_contents(folder)
    if contents.summary is None:
        raise UserError(f"{run}: this run has not finished; continue it with `trainjob run`")
    job = _overridden(contents.job_yaml, overrides) if overrides else contents.job
    baselines = job.spec.baselines
    chosen = baselines if baselines is not None and baselines.named else usual_baselines(job.spec.model)
    if chosen is None:
        kinds = [name for name, facts in KINDS.items() if facts.baselines]
        raise UserError(f"{run}: this model has no baselines; they are for {listed(kinds)}")
    with locked(folder):
        comparison = compare_with_baselines(job, folder, chosen.named)
        if overrides:
            replace_baselines(folder, contents.job, baselines)
        write_report(folder)
    if as_json:
        print(printable_json(comparison.model_dump_json(by_alias=True, indent=2)))
    else:
        _show(comparison, job.spec.unit_of_errors)


def _overridden(text: str, overrides: list[str]) -> "TrainJob":
    """The run's TrainJob, with fields of spec.baselines set."""
    from trainjob.api.load import with_overrides

    if other := next((each for each in overrides if not re.match(r"spec\.baselines(?=[.=])", each)), None):
        raise UserError(f"--set {other}: only fields of spec.baselines can be set on a finished run")
    return with_overrides(text, TRAINJOB, overrides)


def _show(comparison: "Comparison", unit: str) -> None:
    from rich.text import Text

    from trainjob.cli.table import show_table
    from trainjob.report.baselines import (
        CASCADE_HEADINGS,
        CASCADE_REMARK,
        cascade_of,
        cascade_table,
        comparison_table,
        headings,
        remarks,
    )

    out = console(highlight=False)
    show_table(out, headings(comparison), comparison_table(comparison))
    for remark in remarks(comparison, unit):
        out.print(Text(remark))
    if (cascade := cascade_of(comparison)) is not None:
        show_table(out, CASCADE_HEADINGS, cascade_table(cascade))
        out.print(Text(CASCADE_REMARK))
