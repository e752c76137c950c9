"""`trainjob dashboard`"""

import os
import sys
import threading
import time
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob import interrupts
from trainjob.cli.cluster_options import Context, JobName, Namespace, open_client, repeated
from trainjob.cli.output import say
from trainjob.errors import UserError

if TYPE_CHECKING:
    from trainjob.api.cluster import KubernetesObject
    from trainjob.cluster import ClusterJob
    from trainjob.cluster.client import ClusterClient

_PAUSE_SECONDS = 2.0


def dashboard(
    name: JobName,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser.")] = True,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, show_default="a free one", help="Port on this machine.")
    ] = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Show Ray's dashboard of a running TrainJob.

    Ctrl-C ends it. Only the browser that opens the printed link first gets in. It does not see Ray's token, which the
    command reads from the job's Secret and adds to each request.
    """
    client = open_client(context, namespace)
    from trainjob.cluster.dashboard_proxy import DashboardProxy
    from trainjob.cluster.head import DASHBOARD_PORT, ray_token, running_head

    options = repeated(context, namespace)
    job = client.job(name)
    head = running_head(client, job, options)
    pod = head["metadata"]["name"]
    token = ray_token(client, head)
    try:
        proxy = DashboardProxy(port or 0, lambda: client.connection.forward(job.namespace, pod, DASHBOARD_PORT), token)
    except OSError as error:
        raise UserError(f"--port {port}: {error.strerror}; without --port, a free one is taken") from None
    with proxy:
        proxy.check()
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        say(f"{name}: Ray's dashboard: {proxy.link}")
        say("The link works once. Ctrl-C ends the command.", error=True)
        if browser and _has_screen():
            webbrowser.open(proxy.link)
        try:
            _wait_for_end(client, job, head, options)
        except KeyboardInterrupt:
            raise typer.Exit(interrupts.exit_code()) from None
        finally:
            proxy.shutdown()


def _has_screen() -> bool:
    """Whether a browser has a window: without one, Python would start one for terminals."""
    return sys.platform != "linux" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())


def _wait_for_end(client: "ClusterClient", job: "ClusterJob", head: "KubernetesObject", options: str) -> None:
    """Raises ClusterError once the head is gone."""
    from trainjob.cluster import ClusterError
    from trainjob.cluster.head import is_up
    from trainjob.cluster.outage import PASSING, Outage

    outage = Outage()
    while True:
        time.sleep(_PAUSE_SECONDS)
        interrupts.check()
        try:
            if is_up(client, head):
                outage.end()
                continue
            now = client.latest(job)
        except PASSING as error:
            outage.bear(error)
            continue
        raise ClusterError(
            f"the head pod {head['metadata']['name']} is gone, and Ray's dashboard with it ({now.phase_and_reason}): "
            f"`trainjob describe {job.name}{options}` shows why"
        )
