"""The configuration of a server: on this machine, and of Ray Serve on a cluster."""

from typing import Any

from pydantic import BaseModel, PositiveInt

APPLICATION = "model"
DEPLOYMENT = "Model"
PORT = 8000
BATCH_ROWS = 64
"""The most rows of a batch."""
ANSWER_SECONDS = 60
"""A request is answered within this time."""
KEEP_ALIVE_SECONDS = 30
"""How long a connection without requests stays open, in seconds."""
SHUTDOWN_SECONDS = 60
"""How long a stopping server continues to compute answers to earlier requests, in seconds."""

ENVIRONMENT = {"RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0", "RAY_worker_niceness": "0"}
"""The model has a thread of its own and never blocks the API, so Ray Serve need not run it in another thread. And users
wait for answers, so the process has the usual priority, not the low one of Ray's other workers."""
LOGGING: dict[str, Any] = {"enable_access_log": False, "log_level": "WARNING"}


class Served(BaseModel):
    """The model to serve."""

    folder: str
    """The folder of a run, a model or a variant: a path, s3:// or gs://."""
    name: str
    """The name that is shown to people."""
    endpoint: str | None = None
    """An S3 server other than Amazon's."""
    batch_rows: PositiveInt = BATCH_ROWS
    """See BATCH_ROWS."""


def serve_config(served: Served, cpus: int, gpus: int) -> dict[str, Any]:
    """The file that Ray Serve is deployed from on a cluster: one replica with this many CPUs and GPUs."""
    return {
        "proxy_location": "EveryNode",
        "http_options": {
            "host": "0.0.0.0",
            "port": PORT,
            "request_timeout_s": ANSWER_SECONDS,
            "keep_alive_timeout_s": KEEP_ALIVE_SECONDS,
        },
        "logging_config": LOGGING,
        "applications": [
            {
                "name": APPLICATION,
                "import_path": "trainjob.serving.deployment:build",
                "route_prefix": "/",
                "args": served.model_dump(exclude_defaults=True),
                "deployments": [
                    {
                        "name": DEPLOYMENT,
                        "num_replicas": 1,
                        "ray_actor_options": {"num_cpus": cpus} | ({"num_gpus": gpus} if gpus else {}),
                    }
                ],
            }
        ],
    }
