"""`trainjob delete`"""

from trainjob.cli.cluster_options import Context, JobNames, Namespace, open_client
from trainjob.cli.output import say


def delete(names: JobNames, context: Context = None, namespace: Namespace = None) -> None:
    """Delete TrainJobs and their pods, but not their runs."""
    client = open_client(context, namespace)
    for job in [client.job(name) for name in names]:
        client.delete(job)
        run = job.run
        say(f"{job.full_name} deleted" + (f"; its run stays: {run}" if run is not None else ""))
