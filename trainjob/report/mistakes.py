"""The report's section on the rows whose predictions are worst."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from trainjob.formatting import count
from trainjob.report.held_out import HeldOut, read_whole_rows
from trainjob.runs.files import MODEL, PREDICTIONS
from trainjob.storage import Folder

SHOWN_CHARACTERS = 240
"""The rest of a longer text is folded away."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Mistake:
    """A row whose prediction is bad."""

    predicted: str
    remark: str
    """A remark on the prediction, or ""."""
    label: str
    source: str
    """File and row."""
    texts: list[str]
    """The beginning of its text, or of all texts of a pair or triplet; empty for an image."""
    longer_text: str | None
    """The stored part of texts that do not end here."""
    picture: str | None
    """A data URI; None for a text, and where none is kept."""


@dataclass(frozen=True)
class MistakesView:
    """The content of the section."""

    title: str
    summary: str
    mistakes: list[Mistake]
    """The worst first."""
    remarks: list[str]
    words: tuple[str, str]
    """The words before a prediction and before a label."""


def mistakes_view(held: HeldOut, folder: Folder) -> MistakesView:
    worst = held.scores.worst(held.table, held.set_name)
    table = read_whole_rows(folder, held.table["row"].to_numpy()[worst.indices])
    order = np.argsort(np.argsort(worst.indices))  # the file's order to that of the indices
    rows = table.take(order).to_pylist()
    parent = common_folder([row["file"] for row in rows if "file" in row])
    return MistakesView(
        worst.title,
        worst.summary,
        [_mistake(row, shown, parent) for row, shown in zip(rows, worst.lines, strict=True)],
        _remarks(rows, parent),
        worst.words,
    )


def _remarks(rows: Sequence[dict[str, Any]], parent: str) -> list[str]:
    if not rows:
        return []
    what = "probabilities" if "probability" in rows[0] else "predictions"
    sentences = [f"All rows with their {what} are in {PREDICTIONS}/{MODEL}.parquet."]
    if parent:
        sentences.append(f"The files are in {parent}.")
    if "file" not in rows[0]:
        sentences.append("That file does not say where its rows come from.")
    return sentences


def _mistake(row: dict[str, Any], shown: tuple[str, str, str], parent: str) -> Mistake:
    """The mistake in a row of the predictions, with prediction, remark and label as they are shown."""
    predicted, remark, label = shown
    texts = [
        _CONTROL.sub("\N{REPLACEMENT CHARACTER}", row[name])
        for name in ("text", "text_pair", "text_negative")
        if row.get(name) is not None
    ]
    is_cut = any(len(text) > SHOWN_CHARACTERS for text in texts)
    thumbnail = row.get("thumbnail")
    return Mistake(
        predicted=predicted,
        remark=remark,
        label=label,
        source=_source(row, parent),
        texts=[f"{text[:SHOWN_CHARACTERS].rstrip()}…" if len(text) > SHOWN_CHARACTERS else text for text in texts],
        longer_text="\n\n".join(texts) if is_cut else None,
        picture=thumbnail and f"data:image/jpeg;base64,{base64.b64encode(thumbnail).decode()}",
    )


def _source(row: dict[str, Any], parent: str) -> str:
    if "file" not in row:
        return f"{PREDICTIONS}/{MODEL}.parquet, row {row['row']}"
    file = row["file"].removeprefix(parent)
    return file if row["file_row"] is None else f"{file}, row {count(row['file_row'])}"


def common_folder(files: Sequence[str]) -> str:
    """The folder of all files, with its slash; "" if they have none in common."""
    levels = zip(*(file.split("/")[:-1] for file in files), strict=False)
    folder = "".join(f"{level[0]}/" for level in takewhile(lambda level: len(set(level)) == 1, levels))
    return "" if folder == "/" or folder.endswith("//") else folder
