"""The teacher's logits for the rows that a student trains on. They are computed once, and saved in the run's folder
with the prepared rows, in a file for each group of rows."""

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from trainjob.api import TrainJobSpec
from trainjob.data import Fitted, Preprocessor, user_errors
from trainjob.data.arrays import as_arrow
from trainjob.data.batches.examples import TEACHER
from trainjob.data.batches.prepare import Loading, dataset_of, labelled
from trainjob.data.first_pass.fitting import usable_rows
from trainjob.data.read.chunking import group_parts
from trainjob.data.read.rows import Rows, SourcePart
from trainjob.data.read.spec_parts import source_parts
from trainjob.errors import StorageError, UserError
from trainjob.kinds.targets.class_losses import classifier_of
from trainjob.models.classifier import problem_type
from trainjob.predictor import Predictor
from trainjob.runs.files import SOFT_LABELS
from trainjob.storage import Folder

FIELD = "spec.training.distillation.teacher"


@dataclass(frozen=True)
class RowGroup:
    """Rows whose logits are saved in one file. Picklable."""

    number: int
    parts: tuple[SourcePart, ...]
    has_labels: bool

    @property
    def name(self) -> str:
        return f"{self.number:05}.parquet"

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


@dataclass(frozen=True)
class Teacher:
    """A model in another run's folder, or in a folder of its own."""

    uri: str
    endpoint: str | None
    """S3 server."""

    def load(self) -> Predictor:
        return _loaded(self.uri, self.endpoint)


@cache
def _loaded(uri: str, endpoint: str | None) -> Predictor:
    return Predictor.load(uri, endpoint)


def soft_labels(spec: TrainJobSpec, fitted: Fitted, run: Folder, on_ray: bool) -> Loading:
    """Returns how to load the training rows, and the unlabelled ones, with the teacher's logits. Logits that are not in
    the run's folder yet are computed first, by Ray Data if Ray is used.

    Raises UserError if the model cannot be the teacher, DataError for rows that cannot be used, and StorageError.
    """
    distillation = spec.training.distillation
    assert distillation is not None
    groups = _row_groups(spec)
    kept = set(run.list(SOFT_LABELS))
    missing = [group for group in groups if group.name not in kept]
    if missing:
        teacher = Teacher(distillation.teacher, spec.storage.endpoint if spec.storage else None)
        check_teacher(teacher, spec, run, fitted.preprocessor)
        label = partial(_label_and_save, fitted=fitted, run=run, teacher=teacher)
        if on_ray:
            with user_errors():
                dataset_of(missing, label, gpus=spec.workers.gpus).materialize()
        else:
            for _ in label(missing):
                pass
        _loaded.cache_clear()  # its memory is for training now
    return groups, partial(_read, run=run)


def check_teacher(teacher: Teacher, spec: TrainJobSpec, run: Folder, preprocessor: Preprocessor) -> None:
    """Raises UserError for a teacher that is missing, has not finished, is the run itself, or has learned other inputs,
    classes or losses."""
    if _is_within(teacher.uri, run.uri):
        raise UserError(f"{FIELD}: {teacher.uri} is this run itself; name a run that has finished")
    try:
        predictor = teacher.load()
    except StorageError:
        raise
    except UserError as error:
        raise UserError(f"{FIELD}: {error}") from None
    if predictor.preprocessor.kind != preprocessor.kind:
        nouns = f"is a model for {predictor.preprocessor.input.noun}s, and this one is for {preprocessor.input.noun}s"
        raise UserError(f"{FIELD}: {teacher.uri} {nouns}")
    if predictor.classes != preprocessor.target.classes:
        raise UserError(f"{FIELD}: {teacher.uri} has other classes{_differences(predictor, preprocessor)}")
    if predictor.model.problem_type != problem_type(preprocessor.target.loss(classifier_of(spec.model))):
        raise UserError(
            f"{FIELD}: {teacher.uri} was trained with another loss: name the same in both (crossEntropy or "
            "binaryCrossEntropy)"
        )


def _is_within(uri: str, run: str) -> bool:
    paths = [path if "://" in path else os.path.realpath(path) for path in (uri.rstrip("/"), run.rstrip("/"))]
    return f"{paths[0]}/".startswith(f"{paths[1]}/")


def _differences(teacher: Predictor, student: Preprocessor) -> str:
    """The first few classes that only one of the two knows, for a message."""
    only = [
        (whose, sorted(set(these) - set(others))[:5])
        for whose, these, others in (
            ("it alone", teacher.classes, student.target.classes),
            ("the training rows alone", student.target.classes, teacher.classes),
        )
    ]
    return "".join(f"; {whose} has {', '.join(names)}" for whose, names in only if names)


def _row_groups(spec: TrainJobSpec) -> list[RowGroup]:
    assert spec.dataset is not None
    groups = [(tuple(parts), True) for parts in group_parts(source_parts(spec, spec.dataset.train))]
    if spec.dataset.unlabelled is not None:
        unlabelled = source_parts(spec, spec.dataset.unlabelled, labelled=False)
        groups += [(tuple(parts), False) for parts in group_parts(unlabelled)]
    return [RowGroup(number, parts, has_labels) for number, (parts, has_labels) in enumerate(groups)]


def _label_and_save(groups: Iterable[RowGroup], fitted: Fitted, run: Folder, teacher: Teacher) -> Iterator[pa.Table]:
    """Saves the logits of each group, and yields how many rows it has."""
    predictor = teacher.load()
    for group in groups:
        tables = [_with_logits(rows, labels, fitted, predictor) for rows, labels in _rows(group, fitted, predictor)]
        table = pa.concat_tables(tables) if tables else _empty_table(fitted)
        content = io.BytesIO()
        parquet.write_table(table, content)
        (run / SOFT_LABELS).write(group.name, content.getvalue())
        yield pa.table({"rows": [len(table)]})


def _rows(group: RowGroup, fitted: Fitted, teacher: Predictor) -> Iterator[tuple[Rows, np.ndarray]]:
    """Yields rows and their labels [n, ...]: -1 for a row without a label."""
    columns = teacher.preprocessor.input.columns
    if group.has_labels:
        found = labelled(group.parts, fitted, "train", more_columns=columns)
    else:
        found = usable_rows(group.parts, replace(fitted, label=None), fitted.on_bad_row, columns)
    for rows, labels in found:
        yield rows, fitted.preprocessor.target.unlabelled(len(rows.table)) if labels is None else labels


def _with_logits(rows: Rows, labels: np.ndarray, fitted: Fitted, teacher: Predictor) -> pa.Table:
    logits = teacher.outputs(rows.table, where=rows.where).numpy()
    if not np.isfinite(logits).all():
        raise UserError(f"{FIELD}: the teacher's answers are not numbers; it may have diverged, or be damaged")
    return pa.table(
        {
            "values": fitted.preprocessor.input.transform(rows.table, rows.where),
            "label": as_arrow(labels),
            TEACHER: pa.FixedSizeListArray.from_arrays(pa.array(logits.reshape(-1)), logits.shape[1]),
        }
    )


def _empty_table(fitted: Fitted) -> pa.Table:
    values = pa.list_(fitted.preprocessor.input.value_type)
    target = fitted.preprocessor.target
    logits, label = pa.list_(pa.float32(), target.width), as_arrow(target.unlabelled(0)).type
    return pa.schema([("values", values), ("label", label), (TEACHER, logits)]).empty_table()


def _read(groups: Iterable[RowGroup], run: Folder) -> Iterator[pa.Table]:
    for group in groups:
        yield parquet.read_table(pa.BufferReader((run / SOFT_LABELS).read(group.name)))
