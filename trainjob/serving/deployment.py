"""A model as an application of Ray Serve."""

import ray
from fastapi import FastAPI
from ray import serve
from ray.serve import Application

from trainjob.predictor import Predictor
from trainjob.serving.app import MAX_WAITING_ROWS, build_app, set_up_process
from trainjob.serving.config import DEPLOYMENT, SHUTDOWN_SECONDS, Served


@serve.deployment(
    name=DEPLOYMENT,
    max_ongoing_requests=MAX_WAITING_ROWS,
    max_queued_requests=MAX_WAITING_ROWS,
    graceful_shutdown_wait_loop_s=0.2,
    graceful_shutdown_timeout_s=SHUTDOWN_SECONDS,
)
@serve.ingress()
class Replica:
    """A replica: the model in memory, and its HTTP API."""

    def __init__(self, served: Served) -> None:
        set_up_process(max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1))))
        self._served, self._predictor = served, Predictor.load(served.folder, served.endpoint)

    def __serve_build_asgi_app__(self) -> FastAPI:
        return build_app(self._predictor, self._served.name, self._served.batch_rows)


def build(served: Served) -> Application:
    """The application; a RayService's `import_path` names this function."""
    return Replica.bind(served)  # pyrefly: ignore[missing-attribute]
