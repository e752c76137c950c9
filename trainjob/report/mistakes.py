"""The report's section on the mistakes that the model is most sure of."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from trainjob.evaluation.mistakes import confident_mistakes, is_wrong
from trainjob.formatting import count, percent
from trainjob.report.held_out import HeldOut, read_whole_rows
from trainjob.runs.files import MODEL, PREDICTIONS
from trainjob.storage import Folder

SHOWN_CHARACTERS = 240
"""The rest of a longer text is folded away."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Mistake:
    """A row that is predicted wrong."""

    predicted: str
    probability: str
    label: str
    source: str
    """File and row."""
    text: str | None
    """Or its beginning; None for an image."""
    longer_text: str | None
    """The stored part of a text that begins with `text`."""
    picture: str | None
    """A data URI; None for a text, and where none is kept."""


@dataclass(frozen=True)
class MistakesView:
    """The content of the section."""

    summary: str
    mistakes: list[Mistake]
    """The surest first."""
    remarks: list[str]


def mistakes_view(held: HeldOut, folder: Folder) -> MistakesView:
    wrong = int(is_wrong(held.table).sum())
    indices = confident_mistakes(held.table)
    table = read_whole_rows(folder, held.table["row"].to_numpy()[indices])
    order = np.argsort(np.argsort(indices))  # the file's order to that of `indices`
    lines = table.take(order).to_pylist()
    parent = common_folder([line["file"] for line in lines if "file" in line])
    return MistakesView(
        _summary(len(held.table), held.set_name, wrong, len(lines)),
        [_mistake(line, parent) for line in lines],
        _remarks(lines, parent),
    )


def _summary(rows: int, set_name: str, wrong: int, shown: int) -> str:
    if wrong == 0:
        return f"No mistakes: all {count(rows)} {set_name} rows are predicted right."
    sentence = f"{count(wrong)} of {count(rows)} {set_name} rows are predicted wrong"
    return f"{sentence}. Of these, the model is surest of the following {shown}." if shown < wrong else f"{sentence}."


def _remarks(lines: Sequence[dict[str, Any]], parent: str) -> list[str]:
    if not lines:
        return []
    sentences = [f"All rows with their probabilities are in {PREDICTIONS}/{MODEL}.parquet."]
    if parent:
        sentences.append(f"The files are in {parent}.")
    if "file" not in lines[0]:
        sentences.append("That file does not say where its rows come from.")
    return sentences


def _mistake(line: dict[str, Any], parent: str) -> Mistake:
    text = None if line.get("text") is None else _CONTROL.sub("\N{REPLACEMENT CHARACTER}", line["text"])
    is_cut = text is not None and len(text) > SHOWN_CHARACTERS
    thumbnail = line.get("thumbnail")
    return Mistake(
        predicted=line["prediction"],
        probability=percent(line["probability"]),
        label=line["label"],
        source=_source(line, parent),
        text=f"{text[:SHOWN_CHARACTERS].rstrip()}…" if text and is_cut else text,
        longer_text=text if is_cut else None,
        picture=thumbnail and f"data:image/jpeg;base64,{base64.b64encode(thumbnail).decode()}",
    )


def _source(line: dict[str, Any], parent: str) -> str:
    if "file" not in line:
        return f"{PREDICTIONS}/{MODEL}.parquet, row {line['row']}"
    file = line["file"].removeprefix(parent)
    return file if line["file_row"] is None else f"{file}, row {count(line['file_row'])}"


def common_folder(files: Sequence[str]) -> str:
    """The folder of all files, with its slash; "" if they have none in common."""
    levels = zip(*(file.split("/")[:-1] for file in files), strict=False)
    folder = "".join(f"{level[0]}/" for level in takewhile(lambda level: len(set(level)) == 1, levels))
    return "" if folder == "/" or folder.endswith("//") else folder
