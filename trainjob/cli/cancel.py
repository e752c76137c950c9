"""`trainjob cancel`"""

from trainjob.cli.cluster_options import Context, JobsOrRuns, Namespace, open_client
from trainjob.cli.named_run import is_path
from trainjob.cli.output import say
from trainjob.client.folders import open_folder
from trainjob.errors import UserError, listed


def cancel(names: JobsOrRuns, context: Context = None, namespace: Namespace = None) -> None:
    """End TrainJobs for good, after a last checkpoint.

    NAME is a TrainJob on a cluster, or the local folder of a run that trains on this machine; the latter ends as with
    Ctrl-C.
    """
    for run in filter(is_path, names):
        _cancel_run(run)
    if jobs := [name for name in names if not is_path(name)]:
        _cancel_jobs(jobs, context, namespace)


def _cancel_jobs(names: list[str], context: str | None, namespace: str | None) -> None:
    from trainjob.cluster import Refused

    client = open_client(context, namespace)
    jobs = [client.job(name) for name in names]
    if ended := [job.name for job in jobs if job.has_ended and not job.spec.get("cancel")]:
        raise Refused(f"{listed(ended)}: has ended, so there is nothing to cancel")
    for job in jobs:
        is_so = bool(job.spec.get("cancel"))
        if not is_so:
            client.cancel(job)
        stays = f"; its run stays: {job.run}" if job.run is not None else ""
        say(f"{job.full_name} {'is cancelled already' if is_so else 'cancelled'}{stays}")


def _cancel_run(run: str) -> None:
    from trainjob.runs.files import ATTEMPTS
    from trainjob.runs.lock import stop_holder
    from trainjob.runs.refusals import not_a_run

    folder = open_folder(run)
    if "://" in folder.uri:
        raise UserError(f"{run}: a run in object storage is cancelled where it runs: with Ctrl-C there, or by its job")
    if not folder.exists(ATTEMPTS):
        raise not_a_run(folder, ATTEMPTS)
    say(f"{run} cancelled: process {stop_holder(folder)} was told to stop; `trainjob run` continues it")
