"""Starts a Ray cluster on this machine that ends with this process."""

import logging
import os

from trainjob.errors import TransientError

ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_gcs_server_request_timeout_seconds": "180",
    "RAY_NUM_REDIS_GET_RETRIES": "120",
    "RAY_num_workers_soft_limit": "0",
}
"""Variables that Ray reads when it starts. The third and fourth are the seconds that it waits for its own servers; the
defaults are 60 and 20. The last one ends processes that have had no task for a second: Ray would keep one for each CPU,
of 230 MB after the rows have been prepared."""

STARTS = 2
"""Attempts to start Ray."""


def start(num_cpus: int, object_store_bytes: int, runtime_environment: dict[str, str] | None = None) -> None:
    """Starts Ray without output. Retries once, because the start may fail on a very busy machine.

    Raises TransientError if it fails again.
    """
    import ray

    for attempt in range(STARTS):
        try:
            ray.init(
                address="local",
                num_cpus=num_cpus,
                object_store_memory=object_store_bytes,
                runtime_env=runtime_environment,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
            return
        except Exception as error:  # Ray also raises plain Exception
            ray.shutdown()
            if attempt == STARTS - 1:
                raise TransientError(
                    f"Ray does not start on this machine ({' '.join(str(error).split())[:300]}). It may be too "
                    "busy, or short of memory or disk: free some and run the same command again. Ray's logs are in "
                    f"{os.environ.get('RAY_TMPDIR', '/tmp')}/ray/session_latest/logs."
                ) from error
