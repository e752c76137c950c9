"""An HTTP server that speaks the Hugging Face hub's upload protocol, as far as a folder needs it."""

import base64
import json
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_right"
COMMIT = "0" * 40


@dataclass
class Hub:
    """The uploaded files."""

    address: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Files of each repository that has been committed to or created."""
    visibility: dict[str, str] = field(default_factory=dict)
    commits: int = 0
    failure: tuple[int, str] | None = None
    """The error that answers every request."""
    blobs: dict[str, bytes] = field(default_factory=dict)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        if method == "PUT" and path.startswith("/blobs/"):
            self.blobs[path.removeprefix("/blobs/")] = body
            return 200, {}
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if found := re.fullmatch(r"/api/models/(.+/.+)/preupload/main", path):
            return self._preupload(found[1], json.loads(body))
        if path.endswith(".git/info/lfs/objects/batch"):
            return 200, {"transfer": "basic", "objects": [self._slot(each) for each in json.loads(body)["objects"]]}
        if found := re.fullmatch(r"/api/models/(.+/.+)/commit/main", path):
            return self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        return 404, {"error": f"{method} {path}"}

    def _create(self, asked: dict[str, Any]) -> tuple[int, Any]:
        if asked["organization"] == "nobody":
            return 404, {"error": "no such organization"}
        name = f"{asked['organization'] or 'me'}/{asked['name']}"
        if name in self.repositories:
            return 409, {"error": "You already created this model repo", "url": f"{self.address}/{name}"}
        self.repositories[name], self.visibility[name] = {}, asked.get("visibility", "public")
        return 200, {"url": f"{self.address}/{name}"}

    def _preupload(self, name: str, asked: dict[str, Any]) -> tuple[int, Any]:
        files = [
            {
                "path": each["path"],
                "uploadMode": "lfs" if each["path"].endswith(".safetensors") else "regular",
                "shouldIgnore": False,
                "oid": None,
            }
            for each in asked["files"]
        ]
        return 200, {"files": files}

    def _slot(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {**asked, "actions": {"upload": {"href": f"{self.address}/blobs/{asked['oid']}", "header": {}}}}

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> tuple[int, Any]:
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                self.repositories[name][value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.repositories[name][value["path"]] = self.blobs[value["oid"]]
        self.commits += 1
        return 200, {"success": True, "commitUrl": f"{self.address}/{name}/commit/{COMMIT}", "commitOid": COMMIT}


@contextmanager
def hub() -> Generator[Hub]:
    """A hub of its own, in the block."""
    state = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            body = self._body()
            if state.failure is not None:
                status, answer = state.failure[0], {"error": state.failure[1]}
            elif not self.path.startswith("/blobs/") and self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, answer = 401, {"error": "Invalid credentials"}
            else:
                status, answer = state.answer(self.command, self.path.partition("?")[0], body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = _do  # noqa: N815

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts: list[bytes] = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 the base class's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
