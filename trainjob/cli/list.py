"""`trainjob list`"""

from trainjob.cli.cluster_options import AllNamespaces, Context, Namespace, Output, Watch, open_client
from trainjob.cli.output import say


def list_(
    context: Context = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Output = None,
    watch: Watch = False,
) -> None:
    """List the TrainJobs on a cluster."""
    from trainjob.cli.job_table import JobTable, print_changes, print_documents

    client = open_client(context, namespace)
    within = None if all_namespaces else client.namespace
    table = JobTable(output == "wide", all_namespaces)
    if watch:
        print_changes(client.watch(within), output, table)
        return
    jobs = client.jobs(within)
    if output is not None and output != "wide":
        print_documents(jobs, output, is_list=True)
    elif jobs:
        table.print(jobs)
    else:
        say(f"No TrainJobs in {f'the namespace {within}' if within else 'any namespace'}.", error=True)
