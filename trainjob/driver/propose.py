"""Proposes a TrainJob for unknown data, and tries it up to the end of the first pass over the rows."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.kubernetes_yaml import as_yaml_file
from trainjob.api.load import trainjob_of
from trainjob.data.read.bad_rows import BadRows, bad_rows_error
from trainjob.data.read.split_folders import SplitFiles
from trainjob.driver.check import CheckedData, check_data
from trainjob.errors import DataError, UserError, notify
from trainjob.kinds import KINDS
from trainjob.kinds.data_preview import DataPreview, Proposal, Unsuitable
from trainjob.kinds.read_preview import collected_notices, read_preview
from trainjob.kinds.registry import load_kind

DROP = "onBadRows"


def proposed(data: str, kind: str | None, labels: Sequence[str], folder: Path) -> str:
    """The YAML of a TrainJob for `data`, whose relative paths start at `folder`; the user names `labels`. Raises
    UserError where no kind of model fits, or the data cannot be used."""
    try:
        preview, sets = read_preview(data, labels), {"train": data}
    except SplitFiles as found:
        sets = found.sets
        preview = read_preview(sets["train"], labels)
    chosen = _chosen(preview, kind)
    if "test" in sets and not _labels(chosen) <= read_preview(sets["test"]).names:
        chosen.notes.append(f"Not read, because it has no labels: {sets.pop('test')}.")
    sources = {name: {"uri": uri if "://" in uri else os.path.relpath(uri, folder)} for name, uri in sets.items()}
    document = _document(chosen, sources, data)
    try:
        checked = _checked(document, folder)
    except DataError:
        chosen.dataset[DROP], chosen.comments[DROP] = "drop", "leaves out the rows that cannot be used, see above"
        document = _document(chosen, sources, data)
        try:
            checked = _checked(document, folder)
        except DataError:
            _notify_of_oddities(preview)
            raise
    return "\n".join(_lines(document, chosen, checked, preview.bad)) + "\n"


def _chosen(preview: DataPreview, kind: str | None) -> Proposal:
    """The likeliest proposal, or that of a kind."""
    kinds = [name for name, facts in KINDS.items() if not facts.is_users_loop]
    if kind is not None and kind not in kinds:
        raise UserError(f"--kind {kind}: must be one of {', '.join(kinds)}")
    proposals: list[Proposal] = []
    problems: dict[str, str] = {}
    with collected_notices():  # some read the rows again
        for name in kinds:
            if kind in (None, name):
                try:
                    proposals.append(load_kind(name).propose(preview))
                except Unsuitable as error:
                    problems[name] = str(error)
    if not proposals:
        reasons = "\n".join(f"  {name}: {problem}" for name, problem in problems.items())
        _notify_of_oddities(preview)
        if preview.bad.count:
            raise bad_rows_error({"": preview.bad}, {}, f"No kind of model fits the other rows:\n{reasons}")
        raise UserError(f"{preview.uri}: no kind of model fits as it is\n{reasons}")
    chosen = max(proposals, key=lambda each: each.confidence)
    chosen.notes = [*preview.notes, *chosen.notes]
    return chosen


def _notify_of_oddities(preview: DataPreview) -> None:
    """Gives a Notice of each oddity of data for which nothing is proposed."""
    for note in preview.notes:
        notify(note)


def _labels(chosen: Proposal) -> set[str]:
    """The columns that hold labels."""
    return {*chosen.dataset.get("labels", ()), *([chosen.dataset["label"]] if "label" in chosen.dataset else [])}


def _document(chosen: Proposal, sources: dict[str, Any], data: str) -> dict[str, Any]:
    return {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": _name(data)},
        "spec": {
            "model": chosen.model,
            "dataset": sources | chosen.dataset,
            "training": chosen.training,
            "storage": {"uri": "runs"},
        },
    }


def _name(data: str) -> str:
    """A name for a TrainJob of this data."""
    words = re.findall(r"[a-z0-9]+", PurePosixPath(data.partition("?")[0].rstrip("/")).name.partition(".")[0].lower())
    return "-".join(words)[:40].strip("-") or "model"


def _checked(document: dict[str, Any], folder: Path) -> CheckedData | None:
    """The rows of the data, read as a run of the TrainJob would. None for a pretrained model, which may not be
    downloaded yet."""
    job: TrainJob = trainjob_of(document, folder=folder)
    return None if job.spec.model.pretrained else check_data(job)


def _lines(document: dict[str, Any], chosen: Proposal, checked: CheckedData | None, bad: BadRows) -> Iterator[str]:
    """The lines of the file. `bad` are the rows of the preview that cannot be read with all columns."""
    found = ["Not tried on the rows, because the pretrained model is not fetched here."]
    if checked is not None:
        found = [f"{name} {rows:,} rows" for name, rows in checked.rows.items()]
    fitted = checked.fitted if checked else None
    words = fitted.preprocessor.target.in_words() if fitted else None
    remarks = [remark.text for remark in fitted.profile.remarks] if fitted and fitted.profile else []
    kinds = zip(bad.mistakes, bad.lines(), strict=True)
    unread = [f"Cannot be read: {line}." for name, line in kinds if not any(name in remark for remark in remarks)]
    for note in [", ".join(found), words or "", *unread, *chosen.notes, *remarks]:
        if note:
            yield f"# {_plain(note)}"
    spec = document["spec"]
    yield from (f"{name}: {document[name]}" for name in ("apiVersion", "kind"))
    yield from ("metadata:", f"  name: {_flow(document['metadata']['name'])}", "spec:", "  model:")
    (kind, model), *_ = spec["model"].items()
    yield f"    {kind}:{_comment(chosen.comments.get('model', ''))}"
    yield from (f"      {name}: {_flow(value)}" for name, value in model.items())
    for part in ("dataset", "training", "storage"):
        yield f"  {part}:"
        for name, value in spec[part].items():
            yield f"    {name}: {_flow(value)}{_comment(chosen.comments.get(name, ''))}"


def _flow(value: Any) -> str:
    text = as_yaml_file(value, in_one_line=True)
    return text.strip().removesuffix("...").strip()


def _comment(text: str) -> str:
    return f"  # {_plain(text)}" if text else ""


def _plain(text: str) -> str:
    """The text on one line and without control characters, so that it stays inside a comment."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
