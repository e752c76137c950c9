"""Errors about files that hold no TrainJob."""

from pathlib import Path

import pytest
from trainjob_files import GOOD, problems, write

BAD_FILES = [
    ("", "job.yaml:1  the file is empty; a TrainJob is expected"),
    ("# nothing\n---\n", "job.yaml:1  the file is empty; a TrainJob is expected"),
    ("hello", "job.yaml:1  expected a TrainJob (apiVersion, kind, metadata, spec), got 'hello'"),
    ("\n- a\n", "job.yaml:2  expected a TrainJob (apiVersion, kind, metadata, spec), got a list"),
    (
        "kind: TrainJob\n---\nkind: Secret\n---\nkind: TrainJob\n",
        "job.yaml:5  a file may hold one TrainJob, and one begins on line 1: write a file for each",
    ),
    (
        "kind: Secret\n---\nkind: [TrainJob]\n",
        "job.yaml:1  none of its documents is a TrainJob: Secret, one without a kind",
    ),
    (
        "a: 1\n---\n- b\n",
        "job.yaml:1  none of its documents is a TrainJob: one without a kind, one without a kind",
    ),
    ("kind: Secret\napiVersion: v1\ndata: {}\n", "job.yaml:1  kind  must be TrainJob, got 'Secret'"),
    (
        "a: b: c\n",
        "job.yaml:1:5  not valid YAML: mapping values are not allowed here; "
        "look for a wrong indentation, or text with a colon that needs quotes",
    ),
    (
        "a:\n\t- b\n",
        "job.yaml:2:1  not valid YAML: found character '\\t' that cannot start any token; indent with blanks, not tabs",
    ),
    (
        "a: [1, 2\nb: 3\n",
        "job.yaml:2:2  not valid YAML: expected ',' or ']', but got ':' "
        "(while parsing a flow sequence that starts on line 1)",
    ),
    ("a: *b\n", "job.yaml:1:4  not valid YAML: found undefined alias 'b'"),
    ("a: &a [*a]\n", "job.yaml:1  the YAML is nested too deeply or too large"),
    ("[" * 5000, "job.yaml:1  the YAML is nested too deeply or too large"),
    ('a: "\\UFFFFFFFF"\n', "job.yaml:1:7  not valid YAML: an escape sequence or a number that is out of range"),
    (b"\x89PNG\r\n\x1a\n", "job.yaml  is not UTF-8 text: byte 0x89 at offset 0"),
    ("name: caf\u00e9".encode("latin-1"), "job.yaml  is not UTF-8 text: byte 0xE9 at offset 9"),
    (b"a: 1\nb: \x00\n", "job.yaml:2  not valid YAML: the character U+0000 is not allowed"),
    (b"x" * (3 * 2**20 + 1), "job.yaml  is larger than 3 MiB"),
]


@pytest.mark.parametrize(("content", "line"), BAD_FILES, ids=[line.partition("  ")[2] for _, line in BAD_FILES])
def test_what_is_no_trainjob_gets_one_clear_error(tmp_path: Path, content: str | bytes, line: str) -> None:
    assert problems(write(tmp_path, content)) == [line]


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    levels = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 9)]
    assert problems(write(tmp_path, "\n".join(["a0: &a0 [x]", *levels]))) == [
        "job.yaml:1  the YAML is nested too deeply or too large"
    ]


def test_missing_file_folder_and_unreadable_file(tmp_path: Path) -> None:
    assert problems(tmp_path / "none.yaml") == ["none.yaml  no such file"]
    folder = tmp_path / "folder"
    folder.mkdir()
    assert problems(folder) == ["folder  is a folder; give a YAML file"]
    assert problems(write(tmp_path, GOOD) / "below") == ["below  cannot be read: Not a directory"]
