"""The HTTP API of a model."""

import asyncio
import gc
import logging
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

import torch
from fastapi import Body, Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi_offline import FastAPIOffline
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException as StarletteHTTPException

from trainjob import __version__
from trainjob.errors import UserError
from trainjob.kinds.inputs.questions import Question
from trainjob.kinds.reply import Reply
from trainjob.predictor import Predictor
from trainjob.serving.batches import Batches, QueueFull
from trainjob.serving.config import ANSWER_SECONDS, BATCH_ROWS
from trainjob.serving.limits import RETRY_SECONDS, Limits
from trainjob.serving.metrics import Counted, Metrics
from trainjob.serving.page import HEADERS, page
from trainjob.serving.refusals import of_path, of_request, of_row, one_per_line
from trainjob.serving.requests import Refusal, Row, as_table, most_rows, predictions_type

CPU_ROWS = 8
"""The number of rows of similar length that a CPU computes at once: more would be little faster and much more
padded."""
MAX_WAITING_ROWS = 2000
SWITCH_SECONDS = 0.0005
"""Python's thread switch interval. With the default, a request may wait 5 ms for the model's thread."""

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": description}
    for status, description in {
        400: "The request cannot be parsed.",
        408: "The request arrived too slowly, or its answer took too long.",
        413: "The request is too large.",
        415: "The request is not JSON.",
        422: "The request is invalid, or one of its rows cannot be read.",
        429: "Too many rows are already waiting: retry after the seconds of Retry-After.",
        500: "The model fails.",
        503: "The server is stopping, or has too many open requests.",
    }.items()
}
_log = logging.getLogger(__name__)


def set_up_process(threads: int) -> None:
    """Prepares the process for a model that computes in `threads` beside the event loop."""
    sys.setswitchinterval(SWITCH_SECONDS)
    torch.set_num_threads(threads)


def build_app(predictor: Predictor, name: str, batch_rows: int = BATCH_ROWS) -> FastAPI:
    """The API of the model `name`: /predict, /healthz, /metrics, its documentation, and a page to try it on."""
    preprocessor, metrics = predictor.preprocessor, Metrics()

    def compute(rows: Sequence[Row]) -> Sequence[Reply]:
        return _replies(predictor, rows, metrics)

    batches = Batches(compute, batch_rows, MAX_WAITING_ROWS)
    metrics.waiting_rows.set_function(lambda: batches.waiting)

    @asynccontextmanager
    async def working(_: FastAPI) -> AsyncGenerator[None]:
        work = asyncio.create_task(batches.work())
        gc.freeze()  # a search for garbage among all that is loaded would stop requests for 0.14 s
        yield
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work

    app = FastAPIOffline(title=name, version=__version__, redoc_url=None, lifespan=working)
    app.state.stopping, app.state.open_requests = False, 0
    app.add_middleware(Limits)
    app.add_middleware(Counted, metrics=metrics)
    html, question = page(name, preprocessor), preprocessor.input.question(most_rows(preprocessor))
    example, fields = preprocessor.input.example(), list(TypeAdapter(question).json_schema()["properties"])

    async def refuse_invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return JSONResponse({"detail": of_request(error, fields, example)}, 422)

    app.add_exception_handler(RequestValidationError, refuse_invalid)
    app.add_exception_handler(StarletteHTTPException, _refuse)
    predictions = predictions_type(preprocessor.target.reply_type)

    @app.post("/predict", response_model=predictions, responses=_REFUSALS, dependencies=[Depends(_check_is_json)])
    async def predict(asked: Annotated[question, Body(examples=[example])]) -> Response:
        """The prediction for each row."""
        answer = predictions.model_construct(predictions=await _answers(batches, asked))
        return Response(answer.model_dump_json(), media_type="application/json")

    @app.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """Returns the name of the served model, which is loaded."""
        return {"model": name, "kind": preprocessor.input.noun, **preprocessor.target.sizes()}

    @app.get("/metrics", response_class=Response)
    async def prometheus() -> Response:
        """Counts and times in Prometheus' format."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def try_it() -> HTMLResponse:
        return HTMLResponse(html, headers=HEADERS)

    return app


class _NoNumbers(Exception):
    pass


def _replies(predictor: Predictor, rows: Sequence[Row], metrics: Metrics) -> Sequence[Reply]:
    preprocessor = predictor.preprocessor
    metrics.batch_rows.observe(len(rows))
    with metrics.batch_seconds.time():
        table = as_table(rows, preprocessor.input.columns)
        together = CPU_ROWS if predictor.device.type == "cpu" else len(rows)
        unknown = Counter[str]()
        outputs = predictor.outputs(table, together, lambda _: f"the {preprocessor.input.noun}", unknown)
        if not outputs.isfinite().all():
            raise _NoNumbers("the model computed an output that is not a number")
        replies = preprocessor.target.replies(outputs, predictor.model)
    for column, cells in unknown.items():
        metrics.unknown_categories.labels(column).inc(cells)
    return replies


async def _answers(batches: Batches[Row, Reply], asked: Question) -> list[Reply]:
    """The reply to each row. Raises HTTPException where some row has none."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            found = await batches.answers(asked.as_rows())
    except TimeoutError:
        raise HTTPException(408, f"the answer took more than {ANSWER_SECONDS} s: send fewer rows at a time") from None
    except QueueFull:
        again = {"Retry-After": str(RETRY_SECONDS)}
        message = f"{batches.waiting:,} rows are already waiting: retry this request a little later"
        raise HTTPException(429, message, again) from None
    problems: list[str] = []
    answers: list[Reply] = []
    for index, answer in enumerate(found):
        if isinstance(answer, UserError):
            problems.append(of_row(asked.field, index, answer))
        elif isinstance(answer, BaseException):
            _log.error("the model fails", exc_info=answer)
            raise HTTPException(500, f"{asked.field}[{index}]: the model fails: {answer}")
        else:
            answers.append(answer)
    if problems:
        raise HTTPException(422, one_per_line(problems))
    return answers


async def _check_is_json(request: Request) -> None:  # a plain function would be given a thread
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"Content-Type: must be application/json, not {kind or 'empty'}: send JSON")


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    detail = of_path(error.status_code, request) or error.detail
    return JSONResponse({"detail": detail}, error.status_code, error.headers)
