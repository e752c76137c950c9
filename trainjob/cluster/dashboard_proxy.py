"""Shows Ray's dashboard to one browser of this machine: an HTTP server that adds Ray's token to each request.

The browser never gets the token, which would be valid as long as the head lives. It gets a cookie for the time of the
command, in return for a link that works once: other users of this machine can connect to the port, too.
"""

import re
import secrets
import socket
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from trainjob.cluster.errors import ClusterError
from trainjob.cluster.pod_http import PodConnectionPool

ADDRESS = "127.0.0.1"
_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?")
"""This machine. A page on the Internet whose name resolves to 127.0.0.1 sends that name."""
_LINK = "/open/"
_FORWARDED = ("Accept", "Accept-Encoding", "If-Modified-Since", "If-None-Match", "Range")
"""The request headers that are forwarded; cookies are not."""
_NOT_RETURNED = ("connection", "keep-alive", "set-cookie", "transfer-encoding", "upgrade")
_PIECE = 2**16

_OPENED = b"""<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>Ray</title>"""
"""Leads to the dashboard by a request of this site; after a redirect, a link in a web mail would send no cookie."""


class DashboardProxy(ThreadingHTTPServer):
    """Serves the dashboard to the browser that has opened `link`."""

    daemon_threads = True

    def __init__(self, port: int, connect: Callable[[], socket.socket], token: str | None) -> None:
        """`connect` opens a connection to the dashboard. Raises OSError if `port` is in use; 0 is any free one."""
        super().__init__((ADDRESS, port), _Handler)
        self._upstream, self._token = PodConnectionPool(connect), token
        path = f"{_LINK}{secrets.token_urlsafe(32)}"
        self.link = f"http://{ADDRESS}:{self.server_port}{path}"
        self._unused_links = {path}
        self.cookie = f"trainjob-dashboard-{self.server_port}={secrets.token_urlsafe(32)}"
        """Its name has the port, because browsers send the cookies of all ports of a host."""

    def takes(self, path: str) -> bool:
        """Whether `path` is the link's, for the first time."""
        try:
            self._unused_links.remove(path)
        except KeyError:
            return False
        return True

    def ask(self, path: str, headers: dict[str, str] | None = None) -> BaseHTTPResponse:
        """The dashboard's answer, still to be read. Raises ClusterError if there is none."""
        authorization = {"Authorization": f"Bearer {self._token}"} if self._token is not None else {}
        try:
            return self._upstream.urlopen(
                "GET",
                path,
                headers=(headers or {}) | authorization,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
                decode_content=False,
            )
        except HTTPError as error:
            reason = getattr(error, "reason", None) or error
            raise ClusterError(f"Ray's dashboard does not answer ({reason}): try again in a few seconds") from None

    def check(self) -> None:
        """Raises ClusterError if the dashboard does not answer, or refuses the token."""
        answer = self.ask("/api/version")
        text = answer.data[:200].decode(errors="replace").strip()
        if answer.status != 200:
            raise ClusterError(f"Ray's dashboard answers with HTTP status {answer.status}: {text}")

    def server_close(self) -> None:
        super().server_close()
        self._upstream.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs no error for a browser that has disconnected."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers only GET: Ray's dashboard refuses most other requests of browsers anyway."""

    server: DashboardProxy  # pyrefly: ignore[bad-override-mutable-attribute]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # a body that nobody reads
        if _HOST.fullmatch(self.headers.get("Host", "")) is None:
            self._answer(403, b"This is not the address of this server.\n")
        elif self._has_cookie():
            self._forward()
        elif self.server.takes(self.path):
            cookie = f"{self.server.cookie}; Path=/; HttpOnly; SameSite=Strict"
            self._answer(200, _OPENED, "text/html", {"Set-Cookie": cookie, "Referrer-Policy": "no-referrer"})
        else:
            self._answer(
                403,
                b"Open the link that `trainjob dashboard` has printed, in one browser: it works once. "
                b"For another link, start the command again.\n",
            )

    def _has_cookie(self) -> bool:
        given = self.headers.get("Cookie", "").split(";")
        return any(secrets.compare_digest(each.strip().encode(), self.server.cookie.encode()) for each in given)

    def _forward(self) -> None:
        path = "/" if self.path.startswith(_LINK) else self.path
        headers = {name: self.headers[name] for name in _FORWARDED if name in self.headers}
        try:
            answer = self.server.ask(path, headers)
        except ClusterError as error:
            self._answer(502, f"{error}\n".encode())
            return
        try:
            self._return(answer)
        except (HTTPError, OSError):  # the browser must not take it for complete
            self.close_connection = True
            answer.close()
        finally:
            answer.release_conn()

    def _return(self, answer: BaseHTTPResponse) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in _NOT_RETURNED:
                self.send_header(name, value)
        has_end = "Content-Length" in answer.headers or answer.status in (204, 304)
        if not has_end:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in answer.stream(_PIECE, decode_content=False):
            self.wfile.write(piece if has_end else b"%x\r\n%s\r\n" % (len(piece), piece))
        if not has_end:
            self.wfile.write(b"0\r\n\r\n")

    def _answer(
        self, status: int, body: bytes, kind: str = "text/plain", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response_only(status)
        usual = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
        }
        for name, value in (usual | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Logs nothing: the terminal belongs to the command."""
