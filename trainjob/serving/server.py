"""Serves a model on this machine, in this process, until it is told to stop."""

import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future

import uvicorn
from fastapi import FastAPI

from trainjob import interrupts
from trainjob.errors import UserError
from trainjob.predictor import Predictor
from trainjob.serving.app import build_app, set_up_process
from trainjob.serving.config import KEEP_ALIVE_SECONDS, SHUTDOWN_SECONDS, Served

POLL_SECONDS = 0.01


def serve_here(served: Served, host: str, port: int, on_ready: Callable[[], None], on_stop: Callable[[], None]) -> None:
    """Serves until SIGTERM or SIGINT, answers the requests received until then, and returns; a second SIGINT stops it
    at once.

    `on_ready` is called when requests may come, `on_stop` when no more are taken. Raises UserError if the port is taken
    or the model does not load, and KeyboardInterrupt for a signal before the model is ready, or a second one later.
    """
    with _listener(host, port) as listener:
        set_up_process(max(1, len(os.sched_getaffinity(0)) - 1))  # HTTP has the last core
        app = build_app(Predictor.load(served.folder, served.endpoint), served.name, served.batch_rows)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        # On the main thread, uvicorn would handle signals itself.
        running = interrupts.in_thread(lambda: server.run(sockets=[listener]))
        try:
            _wait_until_ready(server, running)
            on_ready()
            interrupts.result_of(running)
        except KeyboardInterrupt:
            if not server.started:
                raise
            on_stop()
            _end(server, app, running)


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise UserError(
            f"cannot serve at {host}, port {port} ({os.strerror(error.errno or 0)}): give another --port or --host"
        ) from None


def _wait_until_ready(server: uvicorn.Server, running: Future[None]) -> None:
    while not server.started and not running.done():
        interrupts.check()
        time.sleep(POLL_SECONDS)


def _end(server: uvicorn.Server, app: FastAPI, running: Future[None]) -> None:
    """Refuses new requests, and ends the server when the earlier ones are answered."""
    app.state.stopping, deadline = True, time.monotonic() + SHUTDOWN_SECONDS
    while app.state.open_requests and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    server.should_exit = True
    while not running.done():
        time.sleep(POLL_SECONDS)
