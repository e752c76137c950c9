"""Runs Ray Serve on this machine until it is told to stop."""

import logging
import os
import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from trainjob import interrupts, local_ray
from trainjob.errors import TransientError, UserError
from trainjob.serving.config import APPLICATION, DEPLOYMENT, ENVIRONMENT, LOGGING, Served, http_options

OBJECT_STORE_BYTES = 2**28
POLL_SECONDS = 0.05


def _environment(port: int) -> dict[str, str]:
    """Makes the replica itself listen at `port`. Ray Serve's proxy, which listens elsewhere, takes longer to pass a
    request on than a small model takes to answer it."""
    return (
        ENVIRONMENT
        | local_ray.ENVIRONMENT
        | {
            "RAY_SERVE_ENABLE_DIRECT_INGRESS": "1",
            "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(port),
            "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(port + 1),
            "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0",  # no load balancer has to notice
        }
    )


def serve_here(served: Served, host: str, port: int, on_ready: Callable[[], None], on_stop: Callable[[], None]) -> None:
    """Serves until SIGTERM or SIGINT, answers what was asked until then, and returns; a second SIGINT ends it at once.

    `on_ready` is called when requests may come, `on_stop` when no more are taken. Raises UserError where the port is
    taken or the model does not load, and KeyboardInterrupt where a signal comes before the model is ready.
    """
    _check_is_free(host, port)
    os.environ |= _environment(port)

    import ray
    from ray import serve

    logging.getLogger("ray.serve").setLevel(logging.WARNING)

    from trainjob.serving.deployment import Model

    cores = len(os.sched_getaffinity(0))
    try:
        local_ray.start(cores, OBJECT_STORE_BYTES)
        interrupts.handle_again()
        serve.start(http_options=http_options(host, _free_port(host)), logging_config=LOGGING)
        replica = {"num_cpus": max(1, cores - 1)}  # HTTP has the last core
        application = Model.options(ray_actor_options=replica, max_constructor_retry_count=1).bind(served)  # pyrefly: ignore[missing-attribute]
        try:
            handle = serve.run(application, name=APPLICATION, route_prefix="/")
        except RuntimeError as error:
            deployments = serve.status().applications[APPLICATION].deployments
            raise failure(deployments[DEPLOYMENT].message or str(error)) from error
        with suppress(KeyboardInterrupt):
            on_ready()
            interrupts.wait_for_signal()
        on_stop()
        handle.stop.remote().result()
        serve.delete(APPLICATION, _blocking=False)  # `serve.shutdown` would not wait for the answers
        while APPLICATION in serve.status().applications:  # blocking, `delete` looks every second
            time.sleep(POLL_SECONDS)
    finally:
        ray.shutdown()


def _check_is_free(host: str, port: int) -> None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise UserError(
            f"cannot serve at {host}, port {port} ({error.strerror}): give another --port or --host"
        ) from None


def _free_port(host: str) -> int:
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        return probe.getsockname()[1]


def failure(message: str) -> UserError:
    """The error for a replica that does not start, from the traceback in Ray Serve's message."""
    if found := re.findall(r"trainjob\.errors\.\w+: (.+)", message):
        return UserError(found[-1])
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return TransientError(f"the model cannot be served: {lines[-1] if lines else 'Ray Serve does not say why'}")
