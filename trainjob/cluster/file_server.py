"""Serves the files of a folder to read, over HTTP on this pod's loopback address: `python -c SOURCE FOLDER PORT IDLE`.

A pod of any image with Python runs this source, so it imports the standard library alone. It ends after IDLE seconds
without a request.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


class FileServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: str, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.folder = os.path.realpath(folder)
        self.last_request = time.monotonic()

    def serve_while_used(self, idle_seconds: float) -> None:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        while time.monotonic() - self.last_request < idle_seconds:
            time.sleep(1)


class _Handler(BaseHTTPRequestHandler):
    """`/info?path=` describes a file or folder, `/list?path=` the entries of a folder, and `/read?path=&start=&end=`
    returns bytes of a file. Paths are relative to the folder."""

    server: FileServer  # pyrefly: ignore[bad-override-mutable-attribute]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.last_request = time.monotonic()
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        try:
            path = self._real_path(query["path"])
            if url.path == "/read":
                self._send_bytes(path, int(query["start"]), int(query["end"]))
            elif url.path == "/list":
                with os.scandir(path) as entries:
                    found = [_info(entry.name, entry.path) for entry in entries if os.path.exists(entry.path)]
                self._send_json(found)
            else:
                self._send_json(_info("", path))
        except FileNotFoundError:
            self.send_error(404)
        except PermissionError:
            self.send_error(403)

    def _real_path(self, relative: str) -> str:
        path = os.path.realpath(os.path.join(self.server.folder, relative))
        if os.path.commonpath([path, self.server.folder]) != self.server.folder:
            raise PermissionError(path)
        return path

    def _send_bytes(self, path: str, start: int, end: int) -> None:
        with open(path, "rb") as file:
            size = max(0, min(end, os.fstat(file.fileno()).st_size) - start)
            self._send_head("application/octet-stream", size)
            self.wfile.flush()
            sent = 0
            while sent < size:  # a file that shrinks ends the connection early, which the reader notices
                sent += os.sendfile(self.connection.fileno(), file.fileno(), start + sent, size - sent)

    def _send_json(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self._send_head("application/json", len(body))
        self.wfile.write(body)

    def _send_head(self, kind: str, size: int) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Logs nothing."""


def _info(name: str, path: str) -> dict[str, Any]:
    stat = os.stat(path)
    is_folder = os.path.isdir(path)
    return {"name": name, "type": "directory" if is_folder else "file", "size": stat.st_size, "mtime": stat.st_mtime}


if __name__ == "__main__":
    FileServer(sys.argv[1], int(sys.argv[2])).serve_while_used(float(sys.argv[3]))
