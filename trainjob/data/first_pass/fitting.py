"""The first pass over the rows: fits the split, and the preprocessor on only the training rows."""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from trainjob.api import TrainJobSpec
from trainjob.api.data_profile import DataProfile
from trainjob.data.first_pass.profile import Keys, joined_keys, set_profile
from trainjob.data.first_pass.split import Split, hashes
from trainjob.data.first_pass.survey import FittedOn, digest_of
from trainjob.data.preprocessor import Preprocessor, load_preprocessor, saved_json
from trainjob.data.read.bad_rows import BadRows, TooFewRows, bad_rows_error, valid_rows
from trainjob.data.read.chunking import Mapper, group_parts, one_by_one
from trainjob.data.read.counted_reading import begin_reading, counted, read_all
from trainjob.data.read.fingerprint import Fingerprint, fingerprints
from trainjob.data.read.numbers import words_among
from trainjob.data.read.rows import OnBadRow, Rows, SourcePart, leave_out, refuse
from trainjob.data.read.source import UNLABELLED, sources_of
from trainjob.data.read.spec_parts import parts_by_set
from trainjob.data.row_cache import ROW_CACHE
from trainjob.errors import Alarm, DataError, notify
from trainjob.kinds.input import unknown_categories, unknown_in_words
from trainjob.kinds.registry import load_kind
from trainjob.pretrained.remote_model import local_model
from trainjob.pretrained.tokenizer_check import compared_texts
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder

SPLIT_FILE = "split.json"


@dataclass(frozen=True)
class Fitted:
    """The state that all later passes over the rows need. Picklable."""

    preprocessor: Preprocessor
    label: str | None
    """Column of the label; None for a language model, which has none."""
    split: Split | None
    """None where the validation rows have a URI of their own."""
    rows: dict[str, int]
    """Rows of `train`, `validation` and, where there are any, `test` and `unlabelled`."""
    contents: dict[str, str]
    """A digest of the rows of each set that has a source of its own."""
    sources: dict[str, Fingerprint] = field(default_factory=dict)
    """The fingerprint of each of these sets' files before the rows were read."""
    profile: DataProfile | None = None
    """The counts of the rows; None if an earlier version fitted them."""
    sample: list[str] = field(default_factory=list)
    """The beginnings of some training texts, for a comparison with the exported tokenizer; empty for images."""
    drops: bool = False
    """Whether there are rows that cannot be used, which each pass leaves out."""

    def rows_key(self, files: Fingerprint | None) -> Hashable:
        """The key in `ROW_CACHE` of a mask bool [n] that marks the training rows of the training source, in its order.
        It depends on `files`, as other files may have the same rows in another order."""
        thresholds = None if self.split is None else tuple(self.split.thresholds)
        return "is_training", self.contents["train"], files, thresholds

    @property
    def on_bad_row(self) -> OnBadRow:
        """The handler for unusable rows in later passes; the first pass has already reported them."""
        return leave_out if self.drops else refuse

    @property
    def columns(self) -> list[str]:
        """Columns to read of each labeled row."""
        columns = self.preprocessor.input.columns
        return columns if self.label is None else [*columns, self.label]

    @property
    def training_rows(self) -> int:
        """Rows of an epoch, before several are packed into one."""
        return self.rows["train"] + self.rows.get(UNLABELLED, 0)

    def training_row_bytes(self, spec: TrainJobSpec) -> int:
        """The average memory of a prepared training row, including a teacher's logits."""
        logits = self.preprocessor.target.width if spec.training.distillation is not None else 0
        return self.preprocessor.input.row_bytes + logits * np.float32().itemsize

    def source_rows(self, name: str) -> int:
        """Rows of the source of a set; some of those of `train` may be set aside for validation."""
        shares = ("train", "validation") if name == "train" and self.split is not None else (name,)
        return sum(self.rows[share] for share in shares)

    def save(self, folder: Folder) -> None:
        """Writes the preprocessor's files, then split.json: if it exists, all files are complete."""
        with scratch_folder() as temporary:
            self.preprocessor.save(temporary)
            folder.upload(temporary, "")
        state = {
            "label": self.label,
            "rows": self.rows,
            "split": self.split and asdict(self.split),
            "contents": self.contents,
            "sources": {name: asdict(source) for name, source in self.sources.items()},
            "profile": self.profile and self.profile.model_dump(mode="json", by_alias=True),
            "sample": self.sample,
            "drops": self.drops,
        }
        folder.write(SPLIT_FILE, json.dumps(state, indent=1).encode())

    @classmethod
    def load(cls, folder: Folder) -> "Fitted":
        """Raises DataError for a damaged file."""
        with scratch_folder() as temporary:
            folder.download("", temporary)
            try:
                with saved_json(temporary / SPLIT_FILE) as state:
                    return cls._of(state, load_preprocessor(temporary))
            except DataError as error:  # names the folder that the user knows
                raise DataError(str(error).replace(str(temporary), folder.uri)) from error

    @classmethod
    def _of(cls, state: dict[str, Any], preprocessor: Preprocessor) -> "Fitted":
        """Reads the content of split.json."""
        split = state["split"] and Split(**state["split"])
        sources = {name: Fingerprint(**source) for name, source in state.get("sources", {}).items()}
        profile = DataProfile.model_validate(state["profile"]) if state.get("profile") else None
        contents, sample = state.get("contents", {}), state.get("sample", [])
        drops = state.get("drops", False)
        return cls(preprocessor, state["label"], split, state["rows"], contents, sources, profile, sample, drops)


def fit(spec: TrainJobSpec, mapper: Mapper = one_by_one, folders: Sequence[str] = ()) -> Fitted:
    """Reads every set once with `mapper`, keeps 16 bytes a row and a bounded sample, and fits the preprocessor.
    `folders` are the notes on split folders that the profile keeps.

    Raises DataError for rows that cannot be used, StorageError where they cannot be reached.
    """
    assert spec.dataset is not None
    sources = fingerprints(spec)
    sets, kind = parts_by_set(spec), load_kind(spec.model.facts.field)
    bad = {name: BadRows.of_set(name, source) for name, source in sources_of(spec.dataset).items()}
    drops, rows = spec.dataset.on_bad_rows == "drop", dict[str, int]()
    try:
        with local_model(spec, weights=False) as model:
            begin_reading(sets.values())
            found = kind.fit(spec.dataset, model.kind, sets["train"], spec.training.seed, mapper, bad["train"])
        fitted = _fitted(spec, found, sources)
        is_training = found.division.is_training
        ROW_CACHE.put(fitted.rows_key(sources["train"]), is_training, is_training.nbytes)
        keys, unknown = found.division.sets, dict[str, Counter[str]]()
        rows["train"] = len(found.division.is_training)
        begin_reading(parts for name, parts in sets.items() if name != "train")
        for name, parts in sets.items():
            if name != "train":
                label = None if name == UNLABELLED else fitted.label
                copied = replace(fitted.preprocessor, input=copy(fitted.preprocessor.input))  # its caches are not saved
                for_set = replace(fitted, label=label, preprocessor=copied)
                keys[name], unknown[name] = _keys_of_set(parts, for_set, spec.training.seed, mapper, bad[name])
                rows[name] = fitted.rows[name] = len(keys[name].hashes)
                target = fitted.preprocessor.target
                fitted.contents[name] = digest_of(target, keys[name].labels, keys[name].hashes)
        _refuse_unscored(spec, fitted, keys)
    except DataError as error:
        if not any(each.count for each in bad.values()):
            raise
        may_drop = not (drops or isinstance(error, TooFewRows))
        raise bad_rows_error(bad, rows, str(error), _advice(spec, bad["train"], rows, may_drop)) from None
    is_sound = not any(each.count for each in bad.values())
    if not (is_sound or drops):
        raise bad_rows_error(bad, rows, advice=_advice(spec, bad["train"], rows, may_drop=True))
    strange = [f"{name}: {words}" for name, cells in unknown.items() if (words := unknown_in_words(cells, rows[name]))]
    profile = _profile(found, keys, folders, strange)
    for name, each in bad.items():
        if each.count:
            dropped = {"dropped": each.dropped(), "source_rows": each.count + rows[name]}
            profile.sets[name] = profile.sets[name].model_copy(update=dropped)
    return replace(fitted, profile=profile, sample=compared_texts(found.texts), drops=not is_sound)


def _refuse_unscored(spec: TrainJobSpec, fitted: Fitted, keys: Mapping[str, Keys]) -> None:
    """Raises DataError where scores on a set, or the metric of the checkpoints, are not defined."""
    for name in keys.keys() - {"train", UNLABELLED}:
        metric = spec.checkpoints.metric if name == "validation" else None
        if problem := fitted.preprocessor.target.why_not_scored(keys[name].labels, metric):
            is_share = name == "validation" and fitted.split is not None
            advice = "add rows, or give dataset.validation.uri" if is_share else "add rows"
            raise TooFewRows(f"the {name} rows {problem}: {advice}")


def _advice(spec: TrainJobSpec, bad: BadRows, rows: Mapping[str, int], may_drop: bool) -> str:
    """Advice on rows that cannot be used; `bad` are those of the training set, whose labels may be classes."""
    other, words = spec.model.facts.kind_for_classes, words_among(bad)
    are_classes = other and 2 * words > bad.count + rows.get("train", 0)
    return " ".join(
        (
            f"If the labels are classes, choose model.{other}; otherwise correct" if are_classes else "Correct",
            "these rows, or have them left out with `dataset.onBadRows: drop`." if may_drop else "these rows.",
        )
    )


def _fitted(spec: TrainJobSpec, found: FittedOn, sources: dict[str, Fingerprint]) -> Fitted:
    """The state after the training rows. If rows must not be dropped, labels that were left out are already
    reported, so they are accepted and not reported again in other sets."""
    assert spec.dataset is not None
    target = found.division.target
    target = target.lenient() if spec.dataset.on_bad_rows == "fail" else target
    preprocessor = Preprocessor(spec.model.facts.field, found.input, target)
    split, rows = found.division.split, found.division.rows
    label = load_kind(spec.model.facts.field).label_column(spec.dataset)
    return Fitted(preprocessor, label, split, rows, {"train": found.digest}, sources)


def _profile(
    found: FittedOn, keys: dict[str, Keys], folders: Sequence[str], further_notes: Sequence[str]
) -> DataProfile:
    training, target = np.sort(keys["train"].hashes), found.division.target
    return DataProfile(
        sets={name: set_profile(each, None if name == "train" else training) for name, each in keys.items()},
        cut_share=found.input.cut_share(found.texts),
        notes=[*found.notes, *target.notes(), *further_notes],
        folders=list(folders),
        **target.profile(),
    )


def tell_of_data(fitted: Fitted) -> None:
    """Gives a Notice of what stands out in the rows, and an Alarm for each thing that makes scores meaningless."""
    remarks = fitted.profile.remarks if fitted.profile is not None else []
    for remark in remarks:
        if remark.is_severe:
            notify(remark.text, Alarm)
    if others := [remark.text for remark in remarks if not remark.is_severe]:
        notify(f"the data: {'; '.join(others)}")


def usable_rows(
    parts: Iterable[SourcePart],
    fitted: Fitted,
    on_bad: OnBadRow,
    more_columns: Sequence[str] = (),
    on_unreadable: OnBadRow | None = None,
) -> Iterator[tuple[Rows, np.ndarray | None]]:
    """The usable rows and their labels [n, ...], None where they have none; `on_bad` is called with the error of each
    other row, but a thread that reads ahead calls `on_unreadable`, where it is given, with those of rows that cannot be
    read. `more_columns` are read besides those of `fitted`.

    If `on_bad` is `refuse`, `Input.check` is left out, because `Input.transform` raises the same errors.
    """
    for rows in read_all(parts, list(dict.fromkeys([*fitted.columns, *more_columns])), on_unreadable or on_bad):
        labels = None
        if fitted.label is not None:
            rows, labels = fitted.preprocessor.target.read(rows, fitted.label, on_bad)
        if on_bad is not refuse:
            valid = valid_rows(rows, fitted.preprocessor.input.check, on_bad)
            rows, labels = rows.take(valid), None if labels is None else labels[valid]
        yield rows, labels


def _keys_of_set(
    parts: list[SourcePart], fitted: Fitted, seed: int, mapper: Mapper, bad: BadRows
) -> tuple[Keys, Counter[str]]:
    """Also returns the number of cells of unknown categories by column. Raises DataError where no row can be used."""
    keys, unknown = list[Keys](), Counter[str]()
    tasks = group_parts(parts)
    for found, others, cells in counted(mapper(partial(_keys, fitted=fitted, seed=seed), tasks), tasks):
        keys.append(found)
        bad.merge(others)
        unknown.update(cells)
    if not sum(len(each.hashes) for each in keys):
        raise TooFewRows(f"{parts[0].uri} has no rows{' that can be used' if bad.count else ''}")
    return joined_keys(keys), unknown


def _keys(parts: list[SourcePart], fitted: Fitted, seed: int) -> tuple[Keys, BadRows, Counter[str]]:
    unreadable, bad, unknown, keys = BadRows(), BadRows(), Counter[str](), list[Keys]()
    for rows, labels in usable_rows(parts, fitted, bad.add, on_unreadable=unreadable.add):
        keys.append(_keys_of(rows, labels, fitted, seed))
        unknown.update(unknown_categories(fitted.preprocessor.input, rows.table, rows.where))
    unreadable.merge(bad)
    return joined_keys(keys), unreadable, unknown


def _keys_of(rows: Rows, labels: np.ndarray | None, fitted: Fitted, seed: int) -> Keys:
    contents = fitted.preprocessor.input.contents(rows.table, rows.where)
    is_empty = np.array([fitted.preprocessor.input.is_empty(content) for content in contents], bool)
    return Keys(labels, hashes(contents, seed), is_empty)
