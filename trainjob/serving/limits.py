"""Limits on the memory that one client and all clients together may use."""

import asyncio
import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 8 * 2**20
"""The largest body of a request."""
MAX_HELD_BYTES = 64 * 2**20
"""The most bytes in the bodies of all open requests."""
MAX_OPEN_REQUESTS = 4000
"""The most requests that are open at once."""
BODY_SECONDS = 20.0
"""A request's body must arrive within this time."""
RETRY_SECONDS = 1


class _Refused(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class _Gone(Exception):
    """The client closed the connection before its request was complete."""


class Limits:
    """ASGI middleware: reads the body of each request before the app sees it, within limits.

    Answers 413 to a body that is too large, 408 to one that comes too slowly, 429 if too many are held, and 503 if too
    many requests are open or while `app.state.stopping`. Counts open requests in `app.state.open_requests`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        state = scope["app"].state
        if state.stopping:
            await send_refusal(send, 503, "the server is stopping: retry this request a little later")
            return
        if state.open_requests >= MAX_OPEN_REQUESTS:
            await send_refusal(send, 503, "the server has too many open requests: retry this one a little later")
            return
        state.open_requests += 1
        try:
            await self._limited(scope, receive, send)
        finally:
            state.open_requests -= 1

    async def _limited(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                await self._read(scope, receive, body)
        except (TimeoutError, _Refused, _Gone) as error:
            self._held -= len(body)
            if isinstance(error, TimeoutError):
                error = _Refused(408, f"the request's body did not arrive within {BODY_SECONDS:g} s")
            if isinstance(error, _Refused):
                await send_refusal(send, error.status, str(error))
            return
        messages: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        try:
            await self._app(scope, replay, send)
        finally:
            self._held -= len(body)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> None:
        """Fills `body`. A body that is too large is read to its end and discarded: many clients read the answer only
        after they have sent everything."""
        announced = dict(scope["headers"]).get(b"content-length", b"")
        if announced.isdigit() and int(announced) > 8 * MAX_BODY_BYTES:
            raise _too_large()
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            chunk, more = message.get("body", b""), message.get("more_body", False)
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                self._held -= len(body)
                body.clear()
                continue
            if self._held + len(chunk) > MAX_HELD_BYTES:
                raise _Refused(429, "the server has too many requests: retry this one a little later")
            self._held += len(chunk)
            body += chunk
        if size > MAX_BODY_BYTES:
            raise _too_large()


def _too_large() -> _Refused:
    limit = f"{MAX_BODY_BYTES // 2**20} MiB"
    return _Refused(413, f"the request's body is larger than {limit}: send fewer rows at a time")


async def send_refusal(send: Send, status: int, detail: str) -> None:
    """Answers and closes the connection, since the rest of the request may still arrive on it."""
    content = json.dumps({"detail": detail}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),
    ]
    if status in (429, 503):
        headers.append((b"retry-after", str(RETRY_SECONDS).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
