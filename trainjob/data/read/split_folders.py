"""Folders of training rows that hold a whole data set: `train/`, `valid/` and `test/` below one root."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from trainjob.api import Dataset, Source, Validation
from trainjob.data.read.formats import common_format, of_format
from trainjob.data.read.listing import find
from trainjob.errors import DataError, notify
from trainjob.storage import concurrently

NAMES = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
}
Folders = dict[str, str]
"""The folder of each split, relative to the root."""


class SplitFiles(DataError):
    """A folder holds tables such as train.csv and test.csv; `sets` has the URI of each split."""

    def __init__(self, message: str, sets: dict[str, str]) -> None:
        super().__init__(message)
        self.sets = sets


def with_split_folders(dataset: Dataset, endpoint: str | None) -> tuple[Dataset, list[str]]:
    """The dataset with the splits that lie below the folders of `train` as its sources, and a note on each of these
    folders, which is also given as a Notice. Sets that the dataset already names stay as they are.

    Raises DataError where the folders look like splits but cannot be used as such, StorageError where they cannot be
    reached.
    """
    roots = dataset.train.all_uris
    found = concurrently(lambda uri: _splits_below(uri, dataset.train, endpoint), roots)
    if not any(found):
        return dataset, []
    named: dict[str, list[str]] = defaultdict(list)
    for root, folders in zip(roots, found, strict=True):
        for split, folder in (folders or {"train": ""}).items():
            named[split].append(f"{root.rstrip('/')}/{folder}" if folder else root)
    notes = [_note(root, folders, dataset) for root, folders in zip(roots, found, strict=True) if folders]
    for note in notes:
        notify(note)
    changed: dict[str, Source | Validation] = {"train": _source(named["train"], dataset.train)}
    if "validation" in named and _takes_validation(dataset):
        changed["validation"] = Validation.model_validate(_uris(named["validation"]))
    if "test" in named and dataset.test is None:
        changed["test"] = _source(named["test"], dataset.train)
    return dataset.model_copy(update=changed), notes


def with_recorded_splits(dataset: Dataset, begun: Dataset) -> Dataset:
    """The dataset with the splits that a run of it has `begun` with: a run continues on these, whatever its folders
    hold by now. The dataset itself where the run has not begun on folders below its own."""
    roots = {uri.rstrip("/") for uri in dataset.train.all_uris}
    found = set(begun.train.all_uris) - set(dataset.train.all_uris)
    if not found or not all(_is_split_of(uri, roots) for uri in found):
        return dataset
    changed: dict[str, Source | Validation | None] = {"train": begun.train}
    if _takes_validation(dataset):
        changed["validation"] = begun.validation
    if dataset.test is None:
        changed["test"] = begun.test
    return dataset.model_copy(update=changed)


def split_of(name: str) -> str | None:
    """The split in a folder's name, such as `Train`, `seg_test` or `training_set`; None if the name has none or
    several."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    found = [split for split, names in NAMES.items() if words.intersection(names)]
    return found[0] if len(found) == 1 else None


def _is_name(folder: str) -> bool:
    """Whether a folder's name is only the name of a split."""
    return any(folder.lower() in names for names in NAMES.values())


def _is_split_of(uri: str, roots: set[str]) -> bool:
    """Whether a folder below one of the roots is a split's."""
    above = next((root for root in roots if uri.startswith(f"{root}/")), None)
    return above is not None and split_of(uri[len(above) + 1 :].partition("/")[0]) == "train"


def _takes_validation(dataset: Dataset) -> bool:
    """Whether the dataset does not say how to validate. An API server fills in the default."""
    return dataset.validation == Dataset.model_fields["validation"].default


def _uris(uris: list[str]) -> dict[str, object]:
    return {"uri": uris[0]} if len(uris) == 1 else {"uris": uris}


def _source(uris: list[str], train: Source) -> Source:
    return Source.model_validate({**_uris(uris), "format": train.format})


def _splits_below(uri: str, train: Source, endpoint: str | None) -> Folders:
    listing = find(uri, endpoint)
    if not listing.is_folder:
        return {}
    names = [file.name for file in listing.data]
    kind = train.format or common_format(names, [uri])
    names = of_format(names, kind)
    return image_splits(names, uri.rstrip("/")) if kind == "images" else table_splits(names, uri.rstrip("/"))


def image_splits(names: Iterable[str], root: str) -> Folders:
    """The splits among the folders of images; none where they are classes. `names` are relative to the root.

    Raises DataError for folders that look like splits and cannot be used.
    """
    tops = _tops(names)
    if "" in tops:  # images in no folder, which is refused
        return {}
    nested = {top: all("/" in rest for rest in rests) for top, rests in tops.items()}
    splits = {top: split for top in tops if (split := split_of(top)) and (_is_name(top) or nested[top])}
    if not splits:
        return {}
    if len(splits) < len(tops) and not _is_divided(split for top, split in splits.items() if nested[top]):
        return {}
    folders = _one_folder_each(splits, tops, root, "classes: if these are your classes, rename the folders")
    if flat := [top for top in folders.values() if not nested[top]]:
        raise DataError(
            f"{root}: {_spoken(flat)} must have a folder of images for each class, but "
            f"{root}/{flat[0]}/{next(rest for rest in tops[flat[0]] if '/' not in rest)} is not in a class folder"
        )
    return {split: _unpacked_twice(top, tops[top]) for split, top in folders.items()}


def table_splits(names: Iterable[str], root: str) -> Folders:
    """The splits among the folders of tables, which would otherwise all be trained on.

    Raises DataError for folders and files that look like splits and cannot be used.
    """
    tops = _tops(names)
    splits = {top: split for top in tops if _is_name(top) and (split := split_of(top))}
    if _is_divided(splits.values()):
        return _one_folder_each(splits, tops, root, "one set of training rows: to train on all, list them in `uris`")
    _refuse_split_files([f"{top}/{rest}".lstrip("/") for top, rests in tops.items() for rest in rests], root)
    return {}


def _tops(names: Iterable[str]) -> dict[str, list[str]]:
    """The paths below each folder in the root, by folder; under "" the files that are in no folder."""
    tops: dict[str, list[str]] = defaultdict(list)
    for name in names:
        top, slash, rest = name.partition("/")
        tops[top if slash else ""].append(rest if slash else name)
    return tops


def _is_divided(splits: Iterable[str]) -> bool:
    """Whether there is a training split and another."""
    found = set(splits)
    return "train" in found and len(found) > 1


def _one_folder_each(splits: Mapping[str, str], tops: Mapping[str, object], root: str, otherwise: str) -> Folders:
    """Raises DataError for folders beside the splits, for two folders of one split, and for a missing training
    split."""
    folders = {split: top for top, split in sorted(splits.items(), reverse=True)}
    problem = ""
    if others := sorted(set(tops) - set(splits)):
        problem = f"but there is also {_spoken([name or 'files in no folder' for name in others])}"
    elif len(folders) < len(splits):
        problem = "but several of them are the same split"
    elif "train" not in folders:
        problem = "but there is no folder train/"
    if problem:
        lines = ", ".join(
            f"{split}: {{uri: {root}/{folders.get(split, split)}}}" for split in NAMES if split in {*folders, "train"}
        )
        raise DataError(
            f"{root}: {_spoken(sorted(splits))} look like the splits of a data set, {problem}. "
            f"Write `dataset: {{{lines}}}`. They are not taken as {otherwise}"
        )
    return {split: folders[split] for split in NAMES if split in folders}


def _refuse_split_files(names: list[str], root: str) -> None:
    """Raises DataError for tables such as train.csv and test.csv, or their shards, in one folder."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        first = re.split(r"[^a-z]", PurePosixPath(name).name.lower(), maxsplit=1)[0]
        if split := split_of(first):
            found[split].append(name)
    if not _is_divided(found):
        return
    sets = {split: f"{root}/{_glob(found[split])}" for split in NAMES if split in found}
    lines = ", ".join(f"{split}: {{uri: '{uri}'}}" for split, uri in sets.items())
    raise SplitFiles(
        f"{root} holds {' and '.join(some[0] for some in found.values())}, which look like the splits of a data set. "
        f"Write `dataset: {{{lines}}}`; to train on all of them, list them in `uris`",
        sets,
    )


def _glob(names: list[str]) -> str:
    """One name, or a pattern of its folder that all of them match."""
    if len(names) == 1:
        return names[0]
    path = PurePosixPath(names[0])
    first = re.split(r"[^A-Za-z]", path.name, maxsplit=1)[0]
    return str(path.with_name(f"{first}*{''.join(path.suffixes[-1:])}"))


def _unpacked_twice(top: str, rests: Iterable[str]) -> str:
    """The folder of the classes: `seg_train/seg_train` where an archive was unpacked into a folder of its own name."""
    return f"{top}/{top}" if all(rest.startswith(f"{top}/") and rest.count("/") > 1 for rest in rests) else top


def _note(root: str, folders: Folders, dataset: Dataset) -> str:
    used = {"train", *(["validation"] if _takes_validation(dataset) else []), *([] if dataset.test else ["test"])}
    others = {*(dataset.test.all_uris if dataset.test else []), *(dataset.validation.uris or [dataset.validation.uri])}
    taken = [split for split in folders if split in used]
    text = f"{root}: {_spoken([folders[split] for split in taken])} taken as the {_and(taken)} rows"
    if left := [folders[split] for split in folders if split not in taken and f"{root}/{folders[split]}" not in others]:
        text += f"; {_spoken(left)} left out, since spec.dataset says otherwise"
    return text


def _spoken(folders: list[str]) -> str:
    return _and([folder if " " in folder else f"{folder}/" for folder in folders])


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
