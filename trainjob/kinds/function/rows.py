"""The rows of a training function: raw, and split within each label."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from trainjob.api import TrainJobSpec
from trainjob.data.batches.prepare import dataset_of, sets_of
from trainjob.data.first_pass.split import Side, Split, hashes
from trainjob.data.first_pass.survey import ScannedRows, ScanPlan, nothing, take_survey
from trainjob.data.read.bad_rows import BadRows, bad_rows_error
from trainjob.data.read.chunking import Mapper, one_by_one
from trainjob.data.read.counted_reading import begin_reading, read_all
from trainjob.data.read.rows import Rows, SourcePart, refuse
from trainjob.data.read.spec_parts import source_parts
from trainjob.kinds.target import Target
from trainjob.kinds.targets.class_labels import ClassLabels
from trainjob.kinds.targets.no_labels import NoLabels

if TYPE_CHECKING:
    from ray.data import Dataset


def raw_datasets(spec: TrainJobSpec, mapper: Mapper = one_by_one) -> "dict[str, Dataset]":
    """The sets with all their sources' columns, lazy; split within each label, if one is set. The rows to split are
    read by `mapper`.

    Raises DataError and StorageError as `fit` does.
    """
    split, label = raw_split(spec, mapper), spec.dataset.label if spec.dataset else None
    return {
        name: dataset_of(source_parts(spec, source), partial(_load_raw, split=split, side=side, label=label))
        for name, source, side in sets_of(spec.dataset, split and split[0])
    }


def raw_split(spec: TrainJobSpec, mapper: Mapper = one_by_one) -> tuple[Split, Target] | None:
    """The split of the training rows, if any, and the target whose strata it uses. Raises the errors of `fit`."""
    if spec.dataset is None or spec.dataset.validation.fraction is None:
        return None
    dataset, seed = spec.dataset, spec.training.seed

    def scan(rows: Rows) -> ScannedRows[None]:
        return ScannedRows(hashes(_contents(rows), seed), nothing)

    train, bad = source_parts(spec, dataset.train), BadRows.of_set("train", dataset.train)
    begin_reading([train])
    labels = NoLabels() if dataset.label is None else ClassLabels(dataset.label, fewest=0)
    survey, target = take_survey(dataset, train, ScanPlan(None, labels, scan), mapper, bad)
    if bad.count:
        raise bad_rows_error({"train": bad}, {"train": len(survey.hashes)}, advice="Correct these rows.")
    split = survey.divide(target, dataset.validation.fraction, seed).split
    assert split is not None
    return split, target


def _load_raw(
    parts: Iterable[SourcePart], split: tuple[Split, Target] | None, side: Side | None, label: str | None
) -> Iterator[pa.Table]:
    for rows in read_all(parts, None):
        if split is not None and side is not None:
            thresholds, target = split
            labels = None if label is None else target.read(rows, label, refuse)[1]
            rows = rows.take(thresholds.sides(_contents(rows), target.strata(labels, len(rows.table)))[side])
        yield rows.table


def _contents(rows: Rows) -> list[bytes]:
    return [repr(row).encode() for row in rows.table.to_pylist()]
