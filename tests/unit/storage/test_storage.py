import os
import pickle
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from minio_server import MinIO
from trainjob.errors import StorageError, StorageUnreachable
from trainjob.storage import Folder, open_filesystem, told_of_waiting


@pytest.fixture(params=["local", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param == "local":
        return Folder(str(tmp_path / "run"))
    minio: MinIO = request.getfixturevalue("minio")
    return Folder(f"s3://{request.getfixturevalue('bucket')}/some/run", minio.endpoint)


def test_what_is_written_is_read(folder: Folder) -> None:
    assert not folder.exists("a/b.json")
    folder.write("a/b.json", b"one")
    folder.write("a/b.json", b"two")
    folder.write("a/c.bin", bytes(range(256)) * 50_000)

    assert folder.exists()
    assert folder.exists("a")
    assert folder.exists("a/b.json")
    assert folder.read("a/b.json") == b"two"
    assert folder.read("a/c.bin") == bytes(range(256)) * 50_000
    assert (folder / "a").read("b.json") == b"two"


def test_list_names_children_in_order(folder: Folder) -> None:
    assert folder.list() == []
    for name in ("z", "checkpoints/two/model", "checkpoints/one/model", "a"):
        folder.write(name, b"x")
    assert folder.list() == ["a", "checkpoints", "z"]
    assert folder.list("checkpoints") == ["one", "two"]


def test_trees_travel_whole(folder: Folder, tmp_path: Path) -> None:
    local = tmp_path / "local"
    (local / "deep" / "er").mkdir(parents=True)
    (local / "top.bin").write_bytes(b"top")
    (local / "deep" / "er" / "leaf").write_bytes(b"leaf")

    folder.upload(local, "tree")
    folder.upload(local / "top.bin", "file/top.bin")
    folder.download("tree", tmp_path / "back")
    folder.download("file/top.bin", tmp_path / "new" / "top.bin")

    assert (tmp_path / "back/top.bin").read_bytes() == b"top"
    assert (tmp_path / "back/deep/er/leaf").read_bytes() == b"leaf"
    assert (tmp_path / "new/top.bin").read_bytes() == b"top"


def test_delete_takes_files_and_trees_and_minds_no_absence(folder: Folder) -> None:
    for name in ("keep", "gone", "tree/a/b"):
        folder.write(name, b"x")
    for name in ("gone", "tree", "never"):
        folder.delete(name)
    assert folder.list() == ["keep"]


def test_a_folder_survives_pickling(folder: Folder) -> None:
    folder.write("name", b"x")
    assert pickle.loads(pickle.dumps(folder)).read("name") == b"x"


def test_a_missing_file_is_named(folder: Folder) -> None:
    with pytest.raises(StorageError, match="run/absent"):
        folder.read("absent")


def test_a_failed_local_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    folder.write("file", b"old")
    with pytest.raises(TypeError):
        folder.write("file", "no bytes")  # pyright: ignore[reportArgumentType]
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


def test_a_missing_bucket(minio: MinIO) -> None:
    with pytest.raises(StorageError, match=r"s3://no-such-bucket/x/y: there is no such bucket"):
        Folder("s3://no-such-bucket/x", minio.endpoint).write("y", b"x")


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials(minio: MinIO, bucket: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "wrongwrongwrong")
    with pytest.raises(StorageError, match=r"check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.*secretName") as raised:
        Folder(f"s3://{bucket}", minio.endpoint).write("y", b"x")
    assert not isinstance(raised.value, StorageUnreachable)
    for secret in (minio.access_key, minio.secret_key, "wrongwrongwrong"):
        assert secret not in str(raised.value)


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
    """It still answers what it has begun: MinIO with the first of these."""
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
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(StorageUnreachable, match="s3://bucket/x: the server does not answer"):
            Folder("s3://bucket", f"http://127.0.0.1:{server.server_port}").write("x", b"content")
        server.shutdown()


def test_a_server_that_was_there_is_waited_for(minio: MinIO, bucket: str) -> None:
    folder = Folder(f"s3://{bucket}", minio.endpoint)
    folder.write("name", b"before")
    minio.stop()
    told: list[str] = []

    def tell(message: str) -> None:
        if not told:
            minio.start()
        told.append(message)

    with told_of_waiting(tell):
        folder.write("name", b"after")
    assert folder.read("name") == b"after"
    assert told[0].startswith(f"waits for the storage: s3://{bucket}/name: the server does not answer")
    assert told[-1] == ""


def test_the_endpoint_can_come_from_the_environment(minio: MinIO, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", minio.endpoint)
    Folder(f"s3://{bucket}").write("name", b"x")
    assert Folder(f"s3://{bucket}", minio.endpoint).list() == ["name"]


def test_unknown_schemes_are_refused() -> None:
    with pytest.raises(StorageError, match="ftp://host/x: ftp:// is not supported"):
        open_filesystem("ftp://host/x")


def test_file_uris_are_local_paths(tmp_path: Path) -> None:
    Folder(f"file://{tmp_path}").write("name", b"x")
    assert Folder(str(tmp_path)).read("name") == b"x"
