"""`trainjob events`"""

from trainjob.cli.cluster_options import Context, JobName, Namespace, open_client


def events(name: JobName, context: Context = None, namespace: Namespace = None) -> None:
    """Show the Events of a TrainJob, the oldest first."""
    from trainjob.cli.describe import event_lines
    from trainjob.cli.output import console, say
    from trainjob.cluster.timeline import timeline

    client = open_client(context, namespace)
    job = client.job(name)
    say("\n".join(event_lines(timeline(job, client.events(job)), console().width)))
