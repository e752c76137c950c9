"""`trainjob wait`"""

import re
from typing import Annotated, get_args

import typer

from trainjob.cli.cluster_options import Context, JobName, Namespace, open_client, repeated
from trainjob.cli.output import say

TIMED_OUT = 124
"""Exit code, as timeout's."""


def wait(
    name: JobName,
    phase: Annotated[
        str, typer.Option("--for", metavar="PHASE", help="Running, Suspended, Succeeded or another phase.")
    ] = "Succeeded",
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Give up after 90s, 30m, 6h or 7d; by default never.")
    ] = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Wait until a TrainJob has succeeded or is in another phase.

    The exit code is 0 once it is; 1 if it has ended in another phase, or was deleted; 124 if the time is over.
    """
    from trainjob.api.trainjob_status import Phase

    phases = {each.lower(): each for each in get_args(Phase)}
    if phase.lower() not in phases:
        raise typer.BadParameter(f"must be one of {', '.join(phases.values())}", param_hint="--for")
    wanted, seconds = phases[phase.lower()], duration_seconds(timeout, "--timeout")
    client = open_client(context, namespace)
    shown = ""
    for job in client.follow(client.job(name), seconds):
        if job.status.phase == wanted:
            say(f"{job.full_name}: {wanted}")
            return
        state = f"{job.phase_and_reason}: {' '.join(job.message.split())}".rstrip(": ")
        if job.has_ended:
            say(f"{job.full_name}: {state}", error=True)
            raise typer.Exit(1)
        if state != shown:
            say(f"waiting: {state}", error=True)
        shown = state
    say(
        f"{name} was not {wanted} within {timeout}; `trainjob describe {name}{repeated(context, namespace)}` shows why",
        error=True,
    )
    raise typer.Exit(TIMED_OUT)


def duration_seconds(text: str | None, option: str) -> int | None:
    """Parses an option such as --timeout into seconds."""
    from trainjob.api.cluster import DURATION, seconds

    if text is None:
        return None
    if not re.fullmatch(DURATION, text):
        raise typer.BadParameter(f"write it as 90s, 30m, 6h or 7d, not {text}", param_hint=option)
    return seconds(text)
