"""`trainjob list`"""

import os
from typing import Annotated

import typer

from trainjob.cli.cluster_options import AllNamespaces, Context, Namespace, Output, Watch, open_client
from trainjob.cli.output import say
from trainjob.client.folders import open_folder
from trainjob.cluster.errors import NoCluster
from trainjob.errors import UserError


def list_(
    folder: Annotated[
        str | None, typer.Argument(metavar="[FOLDER]", help="A folder of runs to list instead.", show_default=False)
    ] = None,
    context: Context = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Output = None,
    watch: Watch = False,
) -> None:
    """List the TrainJobs on a cluster, or the runs in a folder."""
    from trainjob.cli.job_table import JobTable, print_changes, print_documents

    if folder is not None:
        if watch or all_namespaces or output not in (None, "wide"):
            raise typer.BadParameter("of a folder, only --output wide is possible", param_hint="FOLDER")
        from trainjob.cli.run_jobs import jobs_in

        if "://" not in folder and not os.path.isdir(folder):
            raise UserError(f"there is no folder {folder} here; without an argument, list shows the TrainJobs")
        if runs := jobs_in(open_folder(folder), folder):
            JobTable(output == "wide", has_namespaces=False, omits_empty=True).print(runs)
        else:
            say(f"No runs in {folder}.", error=True)
        return
    try:
        client = open_client(context, namespace)
    except NoCluster as error:
        raise NoCluster(f"{error}. To list runs on this machine, name their folder: `trainjob list runs`") from None
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
