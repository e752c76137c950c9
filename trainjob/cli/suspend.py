"""`trainjob suspend` and `trainjob resume`"""

from trainjob.cli.cluster_options import Context, JobNames, Namespace, open_client
from trainjob.cli.output import say
from trainjob.errors import listed


def suspend(names: JobNames, context: Context = None, namespace: Namespace = None) -> None:
    """Take a TrainJob's pods away; it keeps its checkpoints."""
    _set(names, context, namespace, suspended=True)


def resume(names: JobNames, context: Context = None, namespace: Namespace = None) -> None:
    """Have a suspended TrainJob go on from its checkpoint."""
    _set(names, context, namespace, suspended=False)


def _set(names: list[str], context: str | None, namespace: str | None, suspended: bool) -> None:
    from trainjob.cluster import Refused

    client = open_client(context, namespace)
    jobs = [client.job(name) for name in names]
    if ended := [job.name for job in jobs if job.has_ended]:
        raise Refused(f"{listed(ended)}: has ended, so there is nothing to {'suspend' if suspended else 'resume'}")
    if deleted := [job.name for job in jobs if job.is_being_deleted]:
        raise Refused(f"{listed(deleted)}: is being deleted; submit it again once it is gone, to train again")
    if cancelled := [job.name for job in jobs if job.spec.get("cancel")]:
        raise Refused(f"{listed(cancelled)}: is being cancelled; submit it under another name to train again")
    done = "suspended" if suspended else "resumed"
    for job in jobs:
        is_so = bool(job.spec.get("suspend")) == suspended
        if not is_so:
            client.suspend(job, suspended)
        say(f"{job.full_name} {f'is {done} already' if is_so else done}")
        if job.status.reason == "Queued" and not suspended:
            say("note: it waits for its queue, which has no room yet", error=True)
