"""A run that is continued sees that its data is no longer the same."""

import os
import re
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from data_specs import image_spec, random_images, some_rows, text_spec, write_csv, write_images

from trainjob.api import TrainJobSpec
from trainjob.data import Fitted, check_same_files, check_unchanged, fit, prepare_examples
from trainjob.data.read.fingerprint import Fingerprint, fingerprints
from trainjob.errors import DataError, Notice
from trainjob.storage import Folder

ROWS = some_rows(30)


def kept(spec: TrainJobSpec, folder: Path) -> Fitted:
    """The fitted data that a run of `spec` keeps."""
    fit(spec).save(Folder(str(folder)))
    return Fitted.load(Folder(str(folder)))


def edit(path: Path) -> None:
    """Another row of the same size."""
    path.write_bytes(path.read_bytes().replace(b"row 7 ", b"row x "))


def move_label(path: Path) -> None:
    """The same texts with other labels."""
    header, *rows = path.read_bytes().splitlines(keepends=True)
    texts, labels = zip(*(row.split(b",") for row in rows), strict=True)
    moved = [*labels[1:], labels[0]]
    path.write_bytes(header + b"".join(b",".join(pair) for pair in zip(texts, moved, strict=True)))


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"one more,law\r\n")


@pytest.mark.parametrize("name", ["train", "validation", "test"])
@pytest.mark.parametrize(
    ("change", "said"),
    [(edit, "rows 30 → 30, changed .* → "), (move_label, "rows 30 → 30"), (append, r"bytes [\d,]+ → [\d,]+, changed")],
)
def test_changed_rows(name: str, change: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    paths = {name: write_csv(tmp_path / f"{name}.csv", ROWS) for name in ("train", "validation", "test")}
    others: dict[str, Any] = {name: {"uri": str(paths[name])} for name in ("validation", "test")}
    spec = text_spec(paths["train"], **others)
    fitted = kept(spec, tmp_path / "kept")
    check_unchanged(spec, fitted)
    change(paths[name])
    os.utime(paths[name], (1, 1))
    message = rf"the data has changed since the run began:\n  spec\.dataset\.{name} \(.*{name}\.csv\): {said}"
    with pytest.raises(DataError, match=message):
        check_unchanged(spec, fitted)


def test_files_written_anew_with_the_same_rows(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", ROWS)
    spec = text_spec(path)
    fitted = kept(spec, tmp_path / "kept")
    os.utime(path, (1, 1))
    now = check_unchanged(spec, fitted)
    assert len(prepare_examples(spec, now)["train"]) == fitted.training_rows


def test_another_file_in_a_folder(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "images", {"a": random_images(5), "b": random_images(5, seed=1)})
    spec = image_spec(folder)
    fitted = kept(spec, tmp_path / "kept")
    victim = folder / "a" / "0.png"
    victim.rename(folder / "b" / "9.png")
    with pytest.raises(DataError, match=r"spec\.dataset\.train .*images\): other files, changed"):
        check_unchanged(spec, fitted)
    (folder / "b" / "9.png").unlink()
    with pytest.raises(DataError, match=r"images\): files 10 → 9, bytes"):
        check_unchanged(spec, fitted)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(("change", "said"), [(edit, "rows 90 → 90"), (append, r"bytes [\d,]+ → [\d,]+, changed")])
def test_a_changed_shard_of_a_list(change: Callable[[Path], None], said: str, number: int, tmp_path: Path) -> None:
    paths = [write_csv(tmp_path / name, ROWS) for name in ("a.csv", "b/1.csv", "b/2.csv")]
    uris = [str(paths[0]), str(tmp_path / "b")]
    spec = text_spec("", train={"uris": uris})
    fitted = kept(spec, tmp_path / "kept")
    check_unchanged(spec, fitted)
    change(paths[number])
    os.utime(paths[number], (1, 1))
    message = rf"spec\.dataset\.train \({', '.join(map(re.escape, uris))}\): {said}"
    with pytest.raises(DataError, match=message):
        check_unchanged(spec, fitted)


def test_another_order_of_a_list_is_no_change(tmp_path: Path) -> None:
    uris = [str(write_csv(tmp_path / name, ROWS)) for name in ("a.csv", "b.csv")]
    fitted = kept(text_spec("", train={"uris": uris}), tmp_path / "kept")
    check_unchanged(text_spec("", train={"uris": uris[::-1]}), fitted)


def test_fingerprints_stay_those_of_runs_that_have_begun(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        path = tmp_path / name
        path.write_bytes(b"text,label\nx,y\n")
        os.utime(path, (1, 1))
    changed = "1970-01-01T00:00:01+00:00"
    alone, both = (
        Fingerprint(1, 15, changed, "d4c38ed490fd47a3f9f6d7ad1f688578", "5c6951126eb2ef84aec8b3e30bd23fb7"),
        Fingerprint(2, 30, changed, "53e05b7cd149dd14da539035fc0ddf90", "d4708f245a90c3165fca0fbb2df863eb"),
    )
    assert fingerprints(text_spec(tmp_path / "a.csv"))["train"] == alone
    for name in ("", "*.csv"):
        assert fingerprints(text_spec(tmp_path / name))["train"] == both


def test_files_of_a_function(tmp_path: Path) -> None:
    path, folder = write_csv(tmp_path / "rows.csv", ROWS), Folder(str(tmp_path / "kept"))
    spec = text_spec(path)
    check_same_files(spec, folder)
    check_same_files(spec, folder)
    os.utime(path, (1, 1))
    with pytest.warns(Notice, match=r"spec\.dataset\.train was rewritten since the run began"):
        check_same_files(spec, folder)
    append(path)
    with pytest.raises(DataError, match=r"the data has changed since the run began:\n.*rows\.csv\): bytes .* → "):
        check_same_files(spec, folder)


def test_the_second_pass_divides_the_rows_as_the_first_did_and_notices_others(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", ROWS)
    spec = text_spec(str(path))
    told, loaded = fit(spec), kept(spec, tmp_path / "kept")
    first, again = prepare_examples(spec, told), prepare_examples(spec, loaded)  # the first takes what is in memory
    assert {name: rows.values.tolist() for name, rows in first.items()} == {
        name: rows.values.tolist() for name, rows in again.items()
    }
    fitted = fit(spec)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(DataError, match=r"rows.csv has changed while it was read: start the run again"):
        prepare_examples(spec, fitted)
    fitted = fit(spec)
    header, *rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + b"".join(rows[::-1]))
    with pytest.raises(DataError, match=r"rows.csv has changed while it was read: start the run again with --fresh"):
        prepare_examples(spec, fitted)


@pytest.mark.parametrize("name", ["train", "validation", "test"])
def test_the_second_pass_notices_other_files_of_every_set(name: str, tmp_path: Path) -> None:
    paths = {name: write_csv(tmp_path / f"{name}.csv", ROWS) for name in ("train", "validation", "test")}
    others: dict[str, Any] = {name: {"uri": str(paths[name])} for name in ("validation", "test")}
    spec = text_spec(paths["train"], **others)
    fitted = fit(spec)
    append(paths[name])
    with pytest.raises(DataError, match=rf"/{name}\.csv has changed while it was read: start the run again"):
        prepare_examples(spec, fitted)


@pytest.mark.parametrize("is_list", [False, True])
def test_a_file_on_the_web(is_list: bool, tmp_path: Path) -> None:
    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(tmp_path))

        def log_message(self, format: str, *_: Any) -> None:  # noqa: A002
            pass

    path = write_csv(tmp_path / "rows.csv", ROWS)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/rows.csv"
        uris = [str(write_csv(tmp_path / "local" / name, some_rows(9))) for name in ("1.csv", "2.csv")]
        spec = text_spec("", train={"uris": [uris[0], url, uris[1]]} if is_list else {"uri": url})
        fitted = kept(spec, tmp_path / "kept")
        check_unchanged(spec, fitted)
        edit(path)
        os.utime(path, (1, 1))
        with pytest.raises(DataError, match=r"rows (30 → 30|48 → 48), changed "):
            check_unchanged(spec, fitted)
        server.shutdown()


def test_only_another_size_on_the_web_is_noticed_between_the_passes(tmp_path: Path) -> None:
    path, requests = write_csv(tmp_path / "rows.csv", ROWS), count()

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(tmp_path))

        def end_headers(self) -> None:
            self.send_header("ETag", f'"{next(requests)}"')  # as of several servers
            super().end_headers()

        def log_message(self, format: str, *_: Any) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/rows.csv"
        spec = text_spec("", train={"uri": url}, validation={"uri": str(write_csv(tmp_path / "other.csv", ROWS))})
        fitted = fit(spec)
        assert len(prepare_examples(spec, fitted)["train"]) == 30
        append(path)
        with pytest.raises(DataError, match=r"/rows\.csv has changed while it was read"):
            prepare_examples(spec, fitted)
        server.shutdown()


@pytest.mark.parametrize("name", ["split.json", "preprocessor.json"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"", "it is empty"), (b"{", "Expecting property name"), (b"{}", "it has no '"), (b"[]", "integer")],
)
def test_damaged_files_of_the_first_pass_are_named(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    kept(text_spec(write_csv(tmp_path / "train.csv", ROWS)), tmp_path / "fitted")
    (tmp_path / "fitted" / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        Fitted.load(Folder(str(tmp_path / "fitted")))
    assert str(caught.value).startswith(f"{tmp_path}/fitted/{name} is damaged, or from another version of trainjob: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
