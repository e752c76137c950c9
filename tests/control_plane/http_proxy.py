"""An HTTP proxy on this machine, for API servers that answer late, or otherwise than they should."""

import asyncio
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout, StreamReader, web

from cluster.control_plane import ControlPlane

_OF_CONNECTIONS = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}

TLS_CLOSES_SECONDS = 0.5
"""Time for connections to close after a read from a server was cancelled. aiohttp does not wait for them; an event loop
that ends earlier emits a warning, which fails whichever test is running."""


class HttpProxy:
    """Passes requests on to an API server, in a thread of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._watches: set[asyncio.Future[bytes]] = set()
        self._serves, self._port = threading.Event(), 0
        self.delay = 0.0
        """Seconds before a request is passed on."""
        self.last_listed: str | None = None
        """The name of a TrainJob after which the next streamed list breaks off."""
        self.changes: list[str] = []
        """Method and path of each request that came and does more than read, oldest first."""

    @contextmanager
    def running(self) -> Generator[int]:
        """Serves at this port during the block."""
        thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        thread.start()
        assert self._serves.wait(30)
        try:
            yield self._port
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join()

    def end_watches(self, last: bytes) -> int:
        """Makes every watch send `last` and then end. Returns the number of watches."""
        return asyncio.run_coroutine_threadsafe(self._end_watches(last), self._loop).result(30)

    async def _end_watches(self, last: bytes) -> int:
        watches = [each for each in self._watches if not each.done()]
        for each in watches:
            each.set_result(last)
        return len(watches)

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        async with ClientSession(timeout=ClientTimeout(total=None), auto_decompress=False) as self._client:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self._port = runner.addresses[0][1]
            self._serves.set()
            await self._over.wait()
            await runner.cleanup()
        await asyncio.sleep(TLS_CLOSES_SECONDS)

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            self.changes.append(f"{request.method} {request.path}")
        await asyncio.sleep(self.delay)
        headers, body = _passed_on(request.headers), await request.read() or None
        async with self._client.request(
            request.method, self._url + request.path_qs, headers=headers, data=body, ssl=False
        ) as found:
            response = web.StreamResponse(status=found.status, headers=_passed_on(found.headers))
            await response.prepare(request)
            last = self._loop.create_future()
            if "watch" in request.query:
                self._watches.add(last)
            with suppress(ConnectionError):  # of who has gone
                if self.last_listed and "sendInitialEvents" in request.query and "/trainjobs" in request.path:
                    await _copy_until(f'"name":"{self.last_listed}"'.encode(), found.content, response)
                    self.last_listed = None
                else:
                    await _copy(found.content, response, last)
            self._watches.discard(last)
        return response


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OF_CONNECTIONS}


async def _copy(source: StreamReader, response: web.StreamResponse, last: asyncio.Future[bytes]) -> None:
    """Until the source ends, or `last` says with what."""
    while not last.done():
        part = asyncio.ensure_future(source.readany())
        try:
            await asyncio.wait([part, last], return_when=asyncio.FIRST_COMPLETED)
            if not part.done() or not part.result():
                break
            await response.write(part.result())
        finally:
            part.cancel()
    if last.done():
        await response.write(last.result())
    await response.write_eof()


async def _copy_until(last: bytes, source: StreamReader, response: web.StreamResponse) -> None:
    """Until a line that contains `last`."""
    async for line in source:
        await response.write(line)
        if last in line:
            break
    await response.write_eof()


@contextmanager
def http_proxy_to(control_plane: ControlPlane, folder: Path) -> Generator[tuple[HttpProxy, dict[str, str]]]:
    """A proxy to the API server, and the environment of a process that is to go through it."""
    configuration = json.loads(control_plane.kubeconfig.read_text())
    proxy = HttpProxy(control_plane.url)
    with proxy.running() as port:
        configuration["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{port}"}
        kubeconfig = folder / f"kubeconfig-{port}"
        kubeconfig.write_text(json.dumps(configuration))
        yield proxy, {"KUBECONFIG": str(kubeconfig)}
