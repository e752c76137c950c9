"""Data sets of the Hugging Face hub, from a server that speaks the part of its protocol that reading takes."""

import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from data_specs import assert_same_examples, some_rows, text_spec, write_csv, write_parquet
from huggingface_hub import HfFileSystem, constants

from trainjob.data import fit
from trainjob.errors import DataError, StorageUnreachable
from trainjob.storage import filesystem

NAME = "nobody/rows"


class _Hub(BaseHTTPRequestHandler):
    """Serves the folder of the server as the data set NAME, at the revision main."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        folder: Path = self.server.folder  # pyrefly: ignore[missing-attribute]
        path = unquote(urlsplit(self.path).path)
        api, files = f"/api/datasets/{NAME}", f"/datasets/{NAME}/resolve/main/"
        if path in (api, f"{api}/revision/main"):
            self._json({"id": NAME, "sha": "0" * 40, "siblings": [], "tags": [], "downloads": 0, "likes": 0})
        elif path.startswith(f"{api}/tree/main"):
            self._tree(folder, folder / path.removeprefix(f"{api}/tree/main").strip("/"))
        elif path.startswith(files) and (folder / path.removeprefix(files)).is_file():
            self._content((folder / path.removeprefix(files)).read_bytes())
        else:
            self._json({"error": "not found"}, 404, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET  # noqa: N815

    def _tree(self, root: Path, folder: Path) -> None:
        if not folder.is_dir():
            self._json({"error": "not found"}, 404, {"X-Error-Code": "EntryNotFound"})
            return
        recursive = "recursive=true" in self.path.lower()
        entries = [
            {
                "type": "file" if file.is_file() else "directory",
                "path": str(file.relative_to(root)),
                "oid": "0" * 40,
                "size": file.stat().st_size if file.is_file() else 0,
            }
            for file in sorted(folder.rglob("*") if recursive else folder.iterdir())
        ]
        self._json(entries)

    def _content(self, data: bytes) -> None:
        if asked := self.headers.get("Range"):
            start, _, end = asked.removeprefix("bytes=").partition("-")
            part = data[int(start) : int(end) + 1 if end else None]
            self._send(206, part, {"Content-Range": f"bytes {start}-{int(start) + len(part) - 1}/{len(data)}"})
        else:
            self._send(200, data, {"ETag": '"1"', "X-Repo-Commit": "0" * 40})

    def _json(self, value: Any, code: int = 200, headers: dict[str, str] | None = None) -> None:
        self._send(code, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _send(self, code: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def _take_hub(patch: pytest.MonkeyPatch, url: str) -> None:
    patch.setattr(constants, "ENDPOINT", url)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
    HfFileSystem.clear_instance_cache()
    filesystem._hub.cache_clear()  # noqa: SLF001


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The folder that is served."""
    folder = tmp_path / "hub"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hub) as server:
        server.folder = folder  # pyrefly: ignore[missing-attribute]
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        _take_hub(monkeypatch, f"http://127.0.0.1:{server.server_port}")
        yield folder
        server.shutdown()
        thread.join()
    HfFileSystem.clear_instance_cache()
    filesystem._hub.cache_clear()  # noqa: SLF001


@pytest.mark.parametrize("uri", ["train", "train/*.parquet", "**/train/0*", "@main/train"])
def test_shards_of_a_data_set_are_read(hub: Path, tmp_path: Path, uri: str):
    for number in range(2):
        write_parquet(hub / "train" / f"0000{number}.parquet", some_rows(60)[number * 30 : number * 30 + 30])
    (hub / "README.md").write_text("rows")
    address = f"hf://datasets/{NAME}{'' if uri.startswith('@') else '/'}{uri}"
    assert_same_examples(text_spec(address), text_spec(write_csv(tmp_path / "rows.csv", some_rows(60))))


@pytest.mark.parametrize("uri", [f"{NAME}/nothing.csv", "nobody/nothing", f"{NAME}@branch/train"])
def test_what_is_not_there_is_told(hub: Path, uri: str):
    write_csv(hub / "train.csv", some_rows())
    spec = text_spec("rows.csv", train={"uri": f"hf://datasets/{uri}"})
    with pytest.raises(
        DataError, match=rf"hf://datasets/{uri}: there is nothing here; correct the URI, or set HF_TOKEN"
    ):
        fit(spec)


def test_a_hub_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch):
    _take_hub(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(
        StorageUnreachable, match=rf"hf://datasets/{NAME}: the Hugging Face hub does not answer .*network"
    ):
        fit(text_spec(f"hf://datasets/{NAME}"))
    filesystem._hub.cache_clear()  # noqa: SLF001
