"""Servers for user code: a Git server and a package index, both over HTTP."""

import base64
import hashlib
import os
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@contextmanager
def served(handler: Any) -> Iterator[str]:
    """Serves until the end of the block. The server's URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


class _Git(BaseHTTPRequestHandler):
    """Git's own CGI program behind HTTP, with a password where `login` is given."""

    def __init__(self, root: Path, login: str | None, *arguments: Any) -> None:
        self._root, self._login = root, login
        super().__init__(*arguments)

    def do_GET(self) -> None:
        expected = self._login and f"Basic {base64.b64encode(self._login.encode()).decode()}"
        if expected and self.headers.get("Authorization") != expected:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        url = urlsplit(self.path)
        environment = {
            "GIT_PROJECT_ROOT": str(self._root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        command, environment = ["git", "http-backend"], os.environ | environment
        answer = subprocess.run(command, input=body, env=environment, stdout=subprocess.PIPE).stdout
        head, _, content = answer.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002
        pass


def git_server(root: Path, login: str | None = None) -> Any:
    """Serves the repositories in `root`, if `login` is given only with this `user:password`."""
    return served(partial(_Git, root, login))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002
        pass


@contextmanager
def package_index(folder: Path, packages: dict[str, str]) -> Iterator[str]:
    """An index with version 1.0 of each package, a module with the given source. The index's URL."""
    for name, source in packages.items():
        write_wheel(folder / "simple" / name, name, source)
    with served(partial(_Quiet, directory=str(folder))) as url:
        yield f"{url}/simple"


def write_wheel(folder: Path, name: str, source: str, requires: Sequence[str] = ()) -> None:
    """A wheel of one module, and the page that links to it."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    needs = [f"Requires-Dist: {each}" for each in requires]
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *needs]
    kind = ["Wheel-Version: 1.0", "Generator: test", "Root-Is-Purelib: true", "Tag: py3-none-any"]
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": "\n".join([*metadata, ""]),
        f"{info}/WHEEL": "\n".join([*kind, ""]),
        f"{info}/RECORD": f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content)  # without the time, so that equal wheels are equal
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>')
