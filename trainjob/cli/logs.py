"""`trainjob logs`"""

import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob.cli.cluster_options import Context, JobOrRun, Namespace, open_client, repeated
from trainjob.cli.named_run import is_run
from trainjob.cli.output import printable, say
from trainjob.cli.wait import duration_seconds
from trainjob.client.folders import job_folder, open_folder
from trainjob.errors import StorageError, UserError, listed

if TYPE_CHECKING:
    from trainjob.cluster import ClusterJob
    from trainjob.cluster.client import ClusterClient
    from trainjob.runs.logs import RankLog
    from trainjob.storage import Folder
    from trainjob.worker.log_capture import LineReader

_POLL_SECONDS = 0.5
_REMOTE_POLL_SECONDS = 5.0
"""On object storage, where a log is written every ten seconds."""
_ATTEMPTS_TO_READ = 5

Show = Callable[[str], None]


def logs(
    name: JobOrRun,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines.")] = False,
    rank: Annotated[
        str | None, typer.Option(metavar="N|all", help="A worker's log, or all workers', from the run's folder.")
    ] = None,
    driver: Annotated[bool, typer.Option("--driver", help="The driver's log, from its pod: the default.")] = False,
    attempt: Annotated[
        int | None, typer.Option(metavar="K", min=1, help="Workers' logs of this start of the driver, not the latest.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="The driver's lines of the last 90s, 30m, 6h or 7d.")
    ] = None,
    grep: Annotated[str | None, typer.Option(metavar="REGEX", help="Only lines in which this is found.")] = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Show what a TrainJob or a run has printed.

    NAME is a TrainJob on a cluster, or a run's folder: a path, s3:// or gs://. Of a TrainJob it is the
    driver's log, with what rank 0 prints, or where its pod is gone rank 0's log in the run's folder.
    """
    wants_workers = rank is not None or attempt is not None
    if driver and wants_workers:
        raise typer.BadParameter(
            "shows the driver's log, --rank and --attempt workers' logs: leave one out",
            param_hint="--driver",
        )
    of_run = is_run(name, context, namespace)
    if since is not None and (wants_workers or of_run):
        raise typer.BadParameter("only the driver's log, of a TrainJob, has times", param_hint="--since")
    if of_run and driver:
        raise typer.BadParameter("a run's folder has no log of the driver", param_hint="--driver")
    show, ranks, seconds = _printer(grep), _ranks(rank), duration_seconds(since, "--since")
    if of_run:
        from trainjob.runs.refusals import not_a_run
        from trainjob.runs.summary import read_summary

        run = open_folder(name)
        if not run.exists("attempts.json"):
            raise not_a_run(run, "attempts.json")
        _show_workers(run, ranks, attempt, show, (lambda: read_summary(run) is not None) if follow else None)
        return
    client = open_client(context, namespace)
    job = client.job(name)
    if not wants_workers and _show_driver(client, job, follow, seconds, show):
        return
    if not wants_workers and (driver or not job.has_ended):
        raise UserError(f"{name} has no pod with the driver's log ({job.phase_and_reason}): --follow waits for it")
    options = repeated(context, namespace)
    try:
        folder = job_folder(client, job, options)
        _show_workers(folder, ranks, attempt, show, _end_of(client, job) if follow else None)
    except StorageError as error:
        raise UserError(
            f"{error}\nRank 0's lines are also in the driver's log: trainjob logs {name}{options} --driver"
        ) from None


def _end_of(client: "ClusterClient", job: "ClusterJob") -> Callable[[], bool]:
    """A function that tells whether the job has ended."""
    from trainjob.cluster.outage import PASSING, Outage

    outage = Outage()

    def has_ended() -> bool:
        try:
            now = client.latest(job)
        except PASSING as error:
            outage.bear(error)
            return False
        outage.end()
        return now.has_ended

    return has_ended


def _show_driver(client: "ClusterClient", job: "ClusterJob", follow: bool, since: int | None, show: Show) -> bool:
    """Shows the driver's log. Returns whether there is one."""
    from trainjob.cluster.driver_log import driver_lines

    waits: set[str] = set()

    def on_wait(text: str) -> None:
        if text not in waits:
            say(f"waiting: {text}", error=True)
        waits.add(text)

    lines = driver_lines(client, job, follow, since, on_wait)
    for line in lines or ():
        show(line.decode(errors="replace"))
    return lines is not None


def _show_workers(
    run: "Folder", ranks: list[int] | None, attempt: int | None, show: Show, is_over: Callable[[], bool] | None
) -> None:
    """Shows the logs of the workers `ranks`, or of all workers if it is None. With `is_over`, follows them until that
    is true, through later attempts unless `attempt` is given."""
    from trainjob.runs.logs import attempt_folder, attempts_with_logs, chosen_attempt

    shown: int | None = None
    showing: _Workers | None = None
    while True:
        is_last = is_over is None or is_over()
        if shown is None:
            new = filter(None, [chosen_attempt(run, attempt)])
        else:
            new = (later for later in attempts_with_logs(run) if attempt is None and later > shown)
        for shown in new:
            if showing is not None:
                showing.show_new(is_last=False)  # printed since the last poll
                showing.finish()
            showing = _Workers(attempt_folder(run, shown), ranks, show)
        if showing is not None:
            showing.show_new(is_last)
        if is_last:
            break
        time.sleep(_REMOTE_POLL_SECONDS if "://" in run.uri else _POLL_SECONDS)
    if showing is None:
        say(f"{run.uri}: no worker has printed anything", error=True)
    else:
        showing.finish()


class _Workers:
    """The logs of an attempt's workers."""

    def __init__(self, folder: "Folder", ranks: list[int] | None, show: Show) -> None:
        self._folder, self._ranks, self._show = folder, ranks, show
        self._logs: dict[int, tuple[RankLog, LineReader]] = {}

    def show_new(self, is_last: bool) -> None:
        """Shows the new lines. Raises UserError if a requested rank has no log at the end."""
        from trainjob.runs.logs import ranks_with_logs

        for tries in range(_ATTEMPTS_TO_READ):
            sizes = self._folder.sizes()
            found = ranks_with_logs(sizes)
            if is_last and (missing := [rank for rank in self._ranks or [] if rank not in found]):
                known = listed([str(rank) for rank in found]) or "none"
                raise UserError(f"{self._folder.uri} has no log of rank {missing[0]}; it has logs of ranks {known}")
            try:
                for rank in found if self._ranks is None else [each for each in self._ranks if each in found]:
                    log, reader = self._log(rank)
                    reader.add(log.read(sizes))
                return
            except StorageError:  # the file was full, and another has its name
                if is_last and tries == _ATTEMPTS_TO_READ - 1:
                    raise

    def _log(self, rank: int) -> "tuple[RankLog, LineReader]":
        """The log of a rank and its printer, which begins each line with the rank if all ranks are shown."""
        from trainjob.runs.logs import RankLog
        from trainjob.worker.log_capture import LineReader

        if rank not in self._logs:
            start = f"[rank {rank}] " if self._ranks is None else ""

            def show(lines: str) -> None:
                for line in lines.split("\n"):
                    self._show(f"{start}{line}")

            self._logs[rank] = RankLog(self._folder, rank), LineReader(show)
        return self._logs[rank]

    def finish(self) -> None:
        for _, reader in self._logs.values():
            reader.finish()


def _printer(grep: str | None) -> Show:
    """Prints the lines in which a regular expression is found."""
    from rich.text import Text

    try:
        pattern = re.compile(grep or "")
    except re.error as error:
        raise typer.BadParameter(f"is not a regular expression: {error}", param_hint="--grep") from None

    def show(line: str) -> None:
        plain = printable(Text.from_ansi(line).plain if "\x1b" in line else line)
        if pattern.search(plain):
            sys.stdout.write(f"{plain}\n")
            sys.stdout.flush()

    return show


def _ranks(rank: str | None) -> list[int] | None:
    """The requested ranks; None for all."""
    if rank == "all":
        return None
    if rank is not None and not re.fullmatch(r"[0-9]{1,6}", rank):
        raise typer.BadParameter(f"must be a worker's number, from 0, or all, not {rank}", param_hint="--rank")
    return [int(rank or 0)]
