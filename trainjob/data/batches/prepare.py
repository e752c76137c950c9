"""The second pass: reads, checks, splits and prepares rows, in memory or in Ray Data."""

import logging
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from trainjob import api
from trainjob.api import Source, TrainJobSpec
from trainjob.data.arrays import as_arrow
from trainjob.data.batches.examples import ROW, Examples
from trainjob.data.first_pass.fitting import Fitted, usable_rows
from trainjob.data.first_pass.split import Side, Split, sides_of
from trainjob.data.preprocessor import Preprocessor
from trainjob.data.read.chunking import Sized, group_parts
from trainjob.data.read.fingerprint import changed_between_passes, fingerprint_of
from trainjob.data.read.rows import Rows, SourcePart
from trainjob.data.read.source import UNLABELLED, sources_of
from trainjob.data.read.spec_parts import source_parts
from trainjob.data.row_cache import ROW_CACHE
from trainjob.doing import DOING, ROWS
from trainjob.errors import DataError, UserError, listed

if TYPE_CHECKING:
    from ray.data import DataContext, DataIterator, Dataset

STORE_SHARE = 0.4
"""Fraction of the object store for prepared rows; the rest is for shuffling and batches."""
MAX_ROWS_OF_A_TASK = 2**40
_CHANGED = "has changed while it was read: start the run again with --fresh"


TableLoader = Callable[[Iterable[Any]], Iterator[pa.Table]]
Loading = tuple[Sequence[Sized], TableLoader]
"""Sources to read, and the function that reads them."""
OnRows = Callable[[int], None]
"""Called with the number of additional rows read. Picklable."""


def load(parts: Iterable[SourcePart], fitted: Fitted, side: Side | None = None) -> Iterator[pa.Table]:
    """Prepared rows in the source's order: `values`, lists of the `value_type`, and `label`, if they have labels.

    With `side`, only the rows on that side of the split. Raises DataError with file and row.
    """
    for rows, labels in labelled(parts, fitted, side):
        yield prepared(rows, labels, fitted.preprocessor)


def prepared(rows: Rows, labels: np.ndarray | None, preprocessor: Preprocessor) -> pa.Table:
    """Prepared rows, as `load` describes, of usable ones and their labels [n, ...], None where they have none. Labels
    that are texts are not stored: the values contain them."""
    columns: dict[str, Any] = {"values": preprocessor.input.transform(rows.table, rows.where)}
    if labels is None or labels.dtype == object:
        return pa.table(columns)
    return pa.table(columns | {"label": as_arrow(labels)})


def labelled(
    parts: Iterable[SourcePart], fitted: Fitted, side: Side | None = None, more_columns: Sequence[str] = ()
) -> Iterator[tuple[Rows, np.ndarray | None]]:
    """The usable raw rows and their labels [n, ...]; with `side`, only those on that side of the split. `more_columns`
    are read besides those of `fitted`."""
    for sides in _labelled_sides(parts, fitted, (side,), more_columns):
        yield sides[side]


def _labelled_sides(
    parts: Iterable[SourcePart],
    fitted: Fitted,
    wanted: Sequence[Side | None],
    more_columns: Sequence[str] = (),
    known: np.ndarray | None = None,
) -> Iterator[dict[Side | None, tuple[Rows, np.ndarray | None]]]:
    """The usable raw rows on each of these sides of the split, None for all rows, and their labels. `known`, bool [n],
    marks the training rows of these parts, if the first pass has determined them."""
    preprocessor, first = fitted.preprocessor, 0
    for rows, labels in usable_rows(parts, fitted, fitted.on_bad_row, more_columns):
        if fitted.split is None or None in wanted:
            yield dict.fromkeys(wanted, (rows, labels))
            continue
        if known is None:
            strata = preprocessor.target.strata(labels, len(rows.table))
            kept = fitted.split.sides(preprocessor.input.contents(rows.table, rows.where), strata)
        else:
            kept = sides_of(known[first : first + len(rows.table)])
            first += len(rows.table)
        yield {
            side: (rows.take(kept[side]), None if labels is None else labels[kept[side]])
            for side in wanted
            if side is not None
        }
    if known is not None and first != len(known):
        raise DataError(f"{next(iter(parts)).uri} {_CHANGED}")


def read_set(spec: TrainJobSpec, fitted: Fitted, name: str) -> Iterator[tuple[Rows, np.ndarray | None]]:
    """The raw rows of one set in the source's order, and their labels [n, ...]."""
    for each, source, side in sets_of(spec.dataset, fitted.split):
        if each == name:
            yield from labelled(source_parts(spec, source), fitted, side)


def prepare_examples(spec: TrainJobSpec, fitted: Fitted, train: Loading | None = None) -> dict[str, Examples]:
    """The sets `train`, `validation` and, if the spec has one, `test`, in memory and in the sources' order. If `train`
    is given, the training rows are read from it."""
    sets = dict[str, list[pa.Table]]()
    for name, table in prepared_tables(spec, fitted, train):
        sets.setdefault(name, []).append(table)
    return {name: Examples.concat(tables) for name, tables in sets.items()}


def prepared_tables(spec: TrainJobSpec, fitted: Fitted, train: Loading | None = None) -> Iterator[tuple[str, pa.Table]]:
    """The same rows table by table, each with the name of its set. A source that is split is read once.

    Raises DataError if the files of a source are no longer those of the first pass.
    """
    assert spec.dataset is not None
    if train is not None:
        parts, loader = train
        yield from (("train", table) for table in loader(parts))
    for name, source in sources_of(spec.dataset).items():
        sides: dict[str, Side | None] = {name: None}
        if name == "train" and fitted.split is not None:
            sides = {"train": "train", "validation": "validation"}
        wanted = {each: side for each, side in sides.items() if each != UNLABELLED and not (train and each == "train")}
        if not wanted:
            continue
        before = fitted.sources.get(name)
        known = ROW_CACHE.take(fitted.rows_key(before)) if None not in sides.values() else None
        for rows_by_side in _labelled_sides(source_parts(spec, source), fitted, list(wanted.values()), known=known):
            for each, side in wanted.items():
                yield each, prepared(*rows_by_side[side], fitted.preprocessor)
        if before is not None and changed_between_passes(before, fingerprint_of(spec, source), source):
            raise DataError(f"{listed(source.all_uris)} {_CHANGED}")


def _loadings(spec: TrainJobSpec, fitted: Fitted, train: Loading | None) -> Iterator[tuple[str, Loading]]:
    for name, source, side in sets_of(spec.dataset, fitted.split):
        if name == "train" and train is not None:
            yield name, train
        else:
            yield name, (source_parts(spec, source), partial(load, fitted=fitted, side=side))


def sets_of(dataset: api.Dataset | None, split: Split | None) -> Iterator[tuple[str, Source, Side | None]]:
    """The name, source and side of the split of each set."""
    if dataset is None:
        return
    for name, source in sources_of(dataset).items():
        if name == "train" and split is not None:
            yield "train", source, "train"
            yield "validation", source, "validation"
        elif name != UNLABELLED:
            yield name, source, None


def prepare_datasets(
    spec: TrainJobSpec, fitted: Fitted, train: Loading | None = None, on_rows: OnRows | None = None
) -> "dict[str, Dataset]":
    """The same sets, prepared in Ray Data, each in the source's order in every run.

    The smallest are materialized as long as they fit into the object store; the others are prepared again whenever they
    are read. Raises DataError for unusable rows of the former; wrap the reading of the latter in `user_errors`.
    `on_rows` is called in the reading processes.
    """
    import ray

    datasets = {
        name: dataset_of(*loading, numbered=name != "train", on_rows=on_rows)
        for name, loading in _loadings(spec, fitted, train)
    }
    room = STORE_SHARE * ray.cluster_resources()["object_store_memory"]
    sizes = bytes_of_sets(spec, fitted)
    for name in sorted(datasets, key=lambda name: sizes[name]):
        room -= sizes[name]
        if room >= 0:
            with user_errors():
                datasets[name] = datasets[name].materialize()
    return datasets


def bytes_of_sets(spec: TrainJobSpec, fitted: Fitted) -> dict[str, int]:
    """Memory of the prepared rows of each set."""
    sizes = {
        name: rows * fitted.preprocessor.input.row_bytes for name, rows in fitted.rows.items() if name != UNLABELLED
    }
    return sizes | {"train": fitted.training_rows * fitted.training_row_bytes(spec)}


def read_datasets(datasets: "Mapping[str, Dataset]") -> dict[str, Examples]:
    """Prepared sets in memory, in the sources' order. Raises DataError for bad rows."""
    return {name: Examples.concat(read_tables(dataset)) for name, dataset in datasets.items()}


def read_tables(data: "Dataset | DataIterator") -> Iterator[pa.Table]:
    """All rows, in tables of the size in which Ray Data keeps them. Raises DataError for bad rows."""
    with user_errors():
        yield from data.iter_batches(batch_size=None, batch_format="pyarrow")  # pyrefly: ignore[bad-argument-type]


def data_context() -> "DataContext":
    """Ray Data's settings in this process, which the datasets and the workers that it starts take over.

    Rows keep their order. Ray Data's limit of 30 minutes without progress is off, because reading pauses while the
    workers validate or save a checkpoint, or while a slow model works on rows that were read ahead.
    """
    from ray.data import DataContext

    context = DataContext.get_current()
    context.execution_options.preserve_order = True
    context.execution_no_progress_timeout_s = -1
    return context


def dataset_of(
    parts: Sequence[Sized], loader: TableLoader, gpus: int = 0, numbered: bool = False, on_rows: OnRows | None = None
) -> "Dataset":
    """The tables that `loader` makes from the parts, in their order; each task gets `gpus` GPUs. If `numbered`, rows
    have the column ROW. `on_rows` is called with the number of rows that a task has read."""
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # errors reach the user as exceptions
    context = data_context()
    context.enable_progress_bars = False
    context.raise_original_map_exception = True
    tasks = [{"number": number, "parts": pickle.dumps(task)} for number, task in enumerate(group_parts(parts))]
    run = partial(_run_tasks, loader=loader, numbered=numbered, on_rows=on_rows)
    return ray.data.from_items(tasks, override_num_blocks=len(tasks)).map_batches(
        run, batch_size=1, batch_format="pyarrow", num_gpus=gpus or None
    )


def _run_tasks(tasks: pa.Table, loader: TableLoader, numbered: bool, on_rows: OnRows | None) -> Iterator[pa.Table]:
    try:
        for task in tasks.to_pylist():
            tables = loader(pickle.loads(task["parts"]))
            if on_rows is not None:
                tables = _reporting(tables, on_rows)
            yield from _numbered(tables, task["number"] * MAX_ROWS_OF_A_TASK) if numbered else tables
    except UserError as error:
        raise TaskError(error) from None


def _reporting(tables: Iterable[pa.Table], on_rows: OnRows) -> Iterator[pa.Table]:
    """The tables; calls `on_rows` with the number of rows read for each, which may be more than it holds."""
    DOING.begin("reading", None, ROWS)
    reported = 0
    for table in tables:
        yield table
        on_rows(DOING.now.done - reported)
        reported = DOING.now.done


def _numbered(tables: Iterable[pa.Table], first: int) -> Iterator[pa.Table]:
    for table in tables:
        yield table.append_column(ROW, pa.array(np.arange(first, first + len(table))))
        first += len(table)


class TaskError(Exception):
    """Carries a UserError out of a Ray task unchanged: Ray adds its own advice to the messages of exceptions."""

    def __init__(self, error: UserError, *advice: str) -> None:
        super().__init__(error, *advice)
        self.error = error


@contextmanager
def user_errors() -> Generator[None]:
    """Raises the UserError that failed a Ray Data task. Put it around code that reads a lazy dataset."""
    try:
        yield
    except TaskError as error:  # Ray raises a subclass of what the task raised
        raise getattr(error, "cause", error).error from None
