"""Options of the commands on the TrainJobs of a cluster, with kubectl's names."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from trainjob.errors import UserError

if TYPE_CHECKING:
    from trainjob.cluster.client import ClusterClient

_COMPLETION_SECONDS = 3.0

Format = Literal["yaml", "json", "name", "wide"]

Context = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig; by default its current one.")
]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace; by default the context's.")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="The jobs of all namespaces.")]
Output = Annotated[
    Format | None, typer.Option("--output", "-o", metavar="FORMAT", help="yaml, json, name, or wide: more columns.")
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Keep running, and print a job again whenever it changes.")]


def completed_names(context: typer.Context, incomplete: str) -> list[str]:
    """Names of jobs, for the shell; none if the cluster does not answer quickly."""
    try:
        client = open_client(context.params.get("context"), context.params.get("namespace"))
        names = client.names(client.namespace, timeout=_COMPLETION_SECONDS)
    except Exception:  # a shell has no place for errors
        return []
    given: Any = context.params.get("names") or ()
    return [name for name in names if name.startswith(incomplete) and name not in given]


JobName = Annotated[
    str, typer.Argument(metavar="NAME", help="A TrainJob.", show_default=False, autocompletion=completed_names)
]
JobOrRun = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A TrainJob, or a run's folder.", show_default=False, autocompletion=completed_names
    ),
]
JobsOrRuns = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME", help="TrainJobs, or runs' folders.", show_default=False, autocompletion=completed_names
    ),
]
JobNames = Annotated[
    list[str],
    typer.Argument(metavar="NAME", help="TrainJobs.", show_default=False, autocompletion=completed_names),
]


def repeated(context: str | None, namespace: str | None) -> str:
    """The given options, for a command that is suggested to the user."""
    return "".join(f" {option} {value}" for option, value in (("--context", context), ("-n", namespace)) if value)


def open_client(context: str | None, namespace: str | None) -> "ClusterClient":
    """A client of the cluster that kubectl would use. Raises ClusterError."""
    try:
        from trainjob.cluster.client import ClusterClient
        from trainjob.cluster.kubeconfig import connect
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("kubernetes"):
            raise
        raise UserError("commands on a cluster need one more package: pip install 'trainjob[cluster]'") from None
    return ClusterClient(connect(context, namespace))
