"""The metrics of `/metrics`, in Prometheus' format."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
ROWS = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Counts and times since this process started."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter(
            "trainjob_serving_requests", "Requests to /predict by their answer.", ["status"], registry=registry
        )
        self.request_seconds = Histogram(
            "trainjob_serving_request_seconds",
            "From a request's first byte to its answer.",
            buckets=SECONDS,
            registry=registry,
        )
        self.batch_seconds = Histogram(
            "trainjob_serving_batch_seconds", "To compute a batch.", buckets=SECONDS, registry=registry
        )
        self.batch_rows = Histogram("trainjob_serving_batch_rows", "Rows of a batch.", buckets=ROWS, registry=registry)
        self.unknown_categories = Counter(
            "trainjob_serving_unknown_categories",
            "Cells whose category the model has not learned.",
            ["column"],
            registry=registry,
        )
        self.waiting_rows = Gauge("trainjob_serving_waiting_rows", "Rows that are in no batch yet.", registry=registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Counted:
    """ASGI middleware that counts and times the requests to /predict."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/predict":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()

        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.requests.labels(str(message["status"])).inc()
                self._metrics.request_seconds.observe(time.perf_counter() - started)
            await send(message)

        await self._app(scope, receive, send_and_count)
