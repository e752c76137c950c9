import os
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from folder_contract import FolderContract
from trainjob.errors import StorageError, StorageUnreachable
from trainjob.storage import Folder, concurrently, open_filesystem


class TestLocalFolder(FolderContract):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Folder:
        return Folder(str(tmp_path / "run"))


def test_a_failed_local_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    folder.write("file", b"old")
    with pytest.raises(TypeError):
        folder.write("file", "no bytes")  # pyrefly: ignore[bad-argument-type]
    assert folder.read("file") == b"old"
    assert folder.list() == ["file"]


def test_local_writes_obey_the_umask(tmp_path: Path) -> None:
    Folder(str(tmp_path)).write("file", b"x")
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="file/name"):
        Folder(str(tmp_path / "file")).write("name", b"x")


def test_an_endpoint_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(
            StorageUnreachable, match=r"s3://bucket/x: the server does not answer.*spec\.storage\.endpoint"
        ):
            Folder("s3://bucket", endpoint).exists("x")


@pytest.mark.parametrize(("status", "code"), [(499, "ClientDisconnected"), (502, "BadGateway")])
def test_a_server_that_is_going_away(status: int, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a server completes requests in progress; MinIO uses the first of these errors."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>none</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        with pytest.raises(StorageUnreachable, match="s3://bucket/x: the server does not answer"):
            Folder("s3://bucket", f"http://127.0.0.1:{server.server_port}").write("x", b"content")
        server.shutdown()


def test_unknown_schemes_are_refused() -> None:
    with pytest.raises(StorageError, match="ftp://host/x: ftp:// is not supported"):
        open_filesystem("ftp://host/x")


def test_file_uris_are_local_paths(tmp_path: Path) -> None:
    Folder(f"file://{tmp_path}").write("name", b"x")
    assert Folder(str(tmp_path)).read("name") == b"x"


def test_requests_wait_at_the_same_time() -> None:
    together = threading.Barrier(3)

    def waits_for_others(number: int) -> int:
        together.wait(30)
        return number * number

    assert concurrently(waits_for_others, range(3)) == [0, 1, 4]
    assert concurrently(waits_for_others, []) == []


def test_the_first_request_that_fails_is_told() -> None:
    with pytest.raises(StorageError, match=r"^2$"):
        concurrently(fails_from_two_on, range(100))


def fails_from_two_on(number: int) -> None:
    if number > 1:
        raise StorageError(str(number))
