"""Sources on a real HTTP server."""

import gzip
import threading
from collections.abc import Callable, Generator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from data_specs import (
    Rows,
    assert_same_examples,
    image_spec,
    random_images,
    some_rows,
    text_spec,
    write_csv,
    write_jsonl,
    write_mnist,
    write_parquet,
)

from trainjob.data import fit
from trainjob.errors import DataError

Writer = Callable[[Path, Rows], Path]


class _Handler(SimpleHTTPRequestHandler):
    """Serves files; of `broken.csv` it promises more than it sends."""

    def end_headers(self) -> None:
        if self.path == "/broken.csv":
            self.send_header("Content-Length", "1000000")
        super().end_headers()

    def send_header(self, keyword: str, value: str) -> None:
        if not (self.path == "/broken.csv" and keyword == "Content-Length" and value != "1000000"):
            super().send_header(keyword, value)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def web(tmp_path: Path) -> Generator[tuple[str, Path]]:
    """A web server's URL and the folder that it serves."""
    folder = tmp_path / "web"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("ending", "write"), [("csv", write_csv), ("jsonl", write_jsonl), ("parquet", write_parquet)])
def test_tables_from_the_web(ending: str, write: Writer, web: tuple[str, Path]) -> None:
    url, folder = web
    path = write(folder / f"rows.{ending}", some_rows())
    assert_same_examples(text_spec(f"{url}/{path.name}?version=2"), text_spec(path))


def test_compressed_tables_from_the_web(web: tuple[str, Path]) -> None:
    url, folder = web
    path = write_csv(folder / "rows.csv", some_rows())
    (folder / "packed.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert_same_examples(text_spec(f"{url}/packed.csv.gz"), text_spec(path))


@pytest.mark.parametrize("zipped", [False, True])
def test_mnist_from_the_web(zipped: bool, web: tuple[str, Path]) -> None:
    url, folder = web
    path = write_mnist(folder, np.stack(random_images(30)), np.arange(30) % 3, zipped)
    assert_same_examples(image_spec(f"{url}/{path.name}"), image_spec(path))


def test_what_the_web_server_says_is_told(web: tuple[str, Path]) -> None:
    url, _ = web
    with pytest.raises(DataError, match=rf"{url}/absent\.csv: the server answers 404"):
        fit(text_spec(f"{url}/absent.csv"))


def test_a_connection_that_breaks_is_not_the_end_of_the_file(web: tuple[str, Path]) -> None:
    url, folder = web
    path = write_csv(folder / "broken.csv", some_rows())
    with pytest.raises(DataError, match=rf"broke {1_000_000 - path.stat().st_size} bytes before the end; try again"):
        fit(text_spec(f"{url}/broken.csv"))


def test_a_git_lfs_pointer_from_the_web_is_named(web: tuple[str, Path]) -> None:
    url, folder = web
    (folder / "rows.csv").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    with pytest.raises(DataError, match=r"rows\.csv is a Git LFS pointer, .*; use an address that has the file itself"):
        fit(text_spec(f"{url}/rows.csv"))


def test_a_web_server_that_is_down(web: tuple[str, Path], unused_port: int) -> None:
    with pytest.raises(DataError, match=r"x\.csv: cannot be read: .*refused"):
        fit(text_spec(f"http://127.0.0.1:{unused_port}/x.csv"))


@pytest.fixture
def unused_port() -> Generator[int]:
    import socket

    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]
