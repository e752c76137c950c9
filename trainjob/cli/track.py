"""`trainjob track`"""

import re

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import RunName, changeable_run
from trainjob.cli.options import Overrides
from trainjob.cli.output import say
from trainjob.errors import UserError


def track(run: RunName, overrides: Overrides, context: Context = None, namespace: Namespace = None) -> None:
    """Write a run to its experiment trackers.

    If a tracker has a part of the run, only the rest is written. The trackers are those of spec.tracking, which --set
    may change. Prints the address of the run in each.
    """
    from trainjob.api.load import with_overrides
    from trainjob.runs.files import TRAINJOB
    from trainjob.runs.folder import parse_job, read_job_yaml
    from trainjob.runs.lock import locked
    from trainjob.tracking.follow import RunTracking

    if other := next((each for each in overrides if not re.match(r"spec\.tracking(?=[.=\[])", each)), None):
        raise UserError(f"--set {other}: of a run that exists, only spec.tracking can be set here")
    folder = changeable_run(run, context, namespace, "track")
    text = read_job_yaml(folder)
    job = with_overrides(text, TRAINJOB, overrides) if overrides else parse_job(folder, text)
    if not job.spec.tracking:
        raise UserError(
            f"{run} names no tracker: add --set 'spec.tracking=[{{mlflow: {{uri: http://localhost:5000}}}}]'"
        )
    problems: list[str] = []
    with locked(folder):
        for settings in job.spec.tracking:
            tracking = RunTracking(folder, job, settings)
            tracking.write("stopped")
            if tracking.status.url:
                say(tracking.status.url)
            if tracking.is_behind:
                problems.append(f"{settings.name}: {tracking.status.message}")
    if problems:
        raise UserError("\n".join(problems))
