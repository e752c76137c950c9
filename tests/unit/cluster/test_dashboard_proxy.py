"""The proxy of Ray's dashboard serves a browser, and refuses other users of the machine and pages on the Internet."""

import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import pytest

from trainjob.cluster.dashboard_proxy import DashboardProxy
from trainjob.cluster.errors import ClusterError

TOKEN = "a-token"


class Answer(NamedTuple):
    status: int
    text: str
    headers: Mapping[str, str]


class Dashboard(BaseHTTPRequestHandler):
    """A server that asks for the token, and tells the headers of a request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/cut":
            self.send_response_only(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"half")
            self.close_connection = True
            return
        is_known = self.headers.get("Authorization") == f"Bearer {TOKEN}"
        body = f"{self.path}\n{self.headers}".encode()
        self.send_response_only(200 if is_known else 401)
        self.send_header("Set-Cookie", "from-the-pod=1")
        if self.path == "/stream":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def upstream() -> Generator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Dashboard) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def served(upstream: ThreadingHTTPServer, token: str | None = TOKEN) -> DashboardProxy:
    return DashboardProxy(0, lambda: socket.create_connection(("127.0.0.1", upstream.server_port)), token)


@pytest.fixture
def proxy(upstream: ThreadingHTTPServer) -> Generator[DashboardProxy]:
    with served(upstream) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield proxy
        proxy.shutdown()


def get(proxy: DashboardProxy, path: str, method: str = "GET", **headers: str) -> Answer:
    with closing(HTTPConnection("127.0.0.1", proxy.server_port, timeout=30)) as connection:
        connection.request(method, path, headers=headers)
        with connection.getresponse() as answer:
            return Answer(answer.status, answer.read().decode(), dict(answer.getheaders()))


def link(proxy: DashboardProxy) -> str:
    return "/" + proxy.link.split("/", 3)[3]


def test_the_browser_that_opens_the_link_first_sees_the_dashboard_and_no_token(proxy: DashboardProxy):
    opened = get(proxy, link(proxy))
    assert (opened.status, TOKEN in opened.text + str(opened.headers)) == (200, False)
    cookie = opened.headers["Set-Cookie"]
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    cookies = f'json={{"a": 1}}; {cookie.split(";")[0]}; other=2'
    seen = get(proxy, "/api/jobs/?x=1", Cookie=cookies, Accept="text/css", Authorization="Bearer stolen")
    assert (seen.status, seen.text.splitlines()[0]) == (200, "/api/jobs/?x=1")
    assert "Accept: text/css" in seen.text
    assert "cookie" not in (seen.text + str(seen.headers)).lower()
    assert get(proxy, "/stream", Cookie=cookies).text == "firstsecond"
    again = get(proxy, link(proxy), Cookie=cookies)
    assert again.text.splitlines()[0] == "/"
    assert get(proxy, link(proxy)).status == 403  # somebody else


@pytest.mark.parametrize("cookie", ["", "trainjob-dashboard=1", "ü=1"])
def test_nobody_else_gets_in(proxy: DashboardProxy, cookie: str):
    for path in ("/", "/api/jobs/", "/open/", "/open/guess", link(proxy) + "x"):
        refused = get(proxy, path, Cookie=cookie.encode().decode("latin-1"))
        assert (refused.status, "start the command again" in refused.text) == (403, True), path


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8265", "", "127.0.0.1.evil.example", "[::1"])
def test_a_page_whose_name_leads_here_is_refused(proxy: DashboardProxy, host: str):
    cookie = proxy.cookie
    assert get(proxy, "/", Cookie=cookie, Host=host).status == 403
    assert get(proxy, "/", Cookie=cookie, Host="localhost:1").status == 200


def test_only_get_is_forwarded(proxy: DashboardProxy):
    for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD"):
        assert get(proxy, "/api/jobs/", method, Cookie=proxy.cookie).status == 501


def test_an_answer_that_breaks_off_is_not_taken_for_complete(proxy: DashboardProxy):
    with pytest.raises(Exception, match="IncompleteRead"):
        get(proxy, "/cut", Cookie=proxy.cookie)


def test_a_dashboard_that_refuses_or_is_away_is_an_error(upstream: ThreadingHTTPServer):
    with served(upstream, token="another") as proxy, pytest.raises(ClusterError, match="HTTP status 401: /api/version"):
        proxy.check()

    def refuse() -> socket.socket:
        raise ConnectionRefusedError("nobody listens")

    with (
        DashboardProxy(0, refuse, None) as proxy,
        pytest.raises(ClusterError, match=r"does not answer .*nobody listens"),
    ):
        proxy.check()


def test_two_dashboards_have_cookies_of_their_own(upstream: ThreadingHTTPServer):
    with served(upstream) as one, served(upstream) as other:
        assert one.cookie.split("=")[0] != other.cookie.split("=")[0]
