"""`trainjob get`"""

from trainjob.cli.cluster_options import Context, JobNames, Namespace, Output, Watch, open_client


def get(
    names: JobNames,
    context: Context = None,
    namespace: Namespace = None,
    output: Output = None,
    watch: Watch = False,
) -> None:
    """Show TrainJobs on a cluster, each on a line or as YAML."""
    from trainjob.cli.job_table import JobTable, print_changes, print_documents

    client = open_client(context, namespace)
    jobs = [client.job(name) for name in names]
    table = JobTable(output == "wide", has_namespaces=False)
    if watch:
        changes = client.watch(client.namespace, names[0] if len(names) == 1 else None)
        print_changes(changes, output, table, frozenset(names))
    elif output is None or output == "wide":
        table.print(jobs)
    else:
        print_documents(jobs, output, is_list=len(jobs) > 1)
