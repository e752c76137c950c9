"""The API on a real HTTP server, without Ray."""

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from asking import Server
from trainjob.predictor import Predictor
from trainjob.serving.app import build_app


@contextmanager
def served(predictor: Predictor, name: str) -> Generator[Server]:
    """The model's API on a free port, in the block."""
    with running(build_app(predictor, name)) as server:
        yield server


@contextmanager
def running(api: FastAPI) -> Generator[Server]:
    app = uvicorn.Server(uvicorn.Config(api, log_config=None, lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=app.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not app.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield Server(listener.getsockname()[1])
        finally:
            app.should_exit = True
            thread.join()
