"""The parts of a source whose rows are tables, or images."""

import posixpath
from collections.abc import Sequence

from trainjob.api import Dataset, Source
from trainjob.data.read.conll import ConllFile
from trainjob.data.read.formats import is_metadata
from trainjob.data.read.image_files import IDXFiles, ImageFiles
from trainjob.data.read.image_tables import images_of_tables, named_files
from trainjob.data.read.label_lists import JoinColumns, with_lists
from trainjob.data.read.partitions import Partition
from trainjob.data.read.rows import SourcePart
from trainjob.data.read.source import images_beside, parts
from trainjob.errors import DataError, listed, notify
from trainjob.kinds import KINDS


def table_parts(
    source: Source,
    endpoint: str | None,
    labelled: bool,
    kind: str,
    nested: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> list[SourcePart]:
    """The parts of a source of tables, for a model of this kind; all rows need a label if `labelled`, `nested`
    columns may hold lists and objects, and `optional` ones may be missing. Raises DataError where the source holds
    images."""
    found = parts(source, endpoint, labelled, nested, optional)
    if _are_images(found):
        raise DataError(f"{listed(source.all_uris)} has images, but model.{kind} needs csv, jsonl or parquet")
    if _are_tagged(found) and "conll" not in KINDS[kind].formats:
        raise DataError(f"{listed(source.all_uris)} has tokens with tags, which model.tokenClassifier learns")
    return found


def image_parts(
    dataset: Dataset, source: Source, endpoint: str | None, labelled: bool, join: JoinColumns = with_lists
) -> list[SourcePart]:
    """The parts of a source of images: folders, IDX files, or tables that hold images or name their files. `join` makes
    one column of a table's columns for several labels."""
    nested = [] if dataset.label is None else [dataset.label]
    found = parts(source, endpoint, labelled, nested)
    if _are_images(found):
        if dataset.labels:
            raise DataError(
                f"{listed(source.all_uris)} has images without a table: spec.dataset.labels names columns of a table"
            )
        return found
    images = images_of_tables(found, endpoint, dataset.image, dataset.label, labelled, dataset.labels or (), join=join)
    if any(is_metadata(part.uri) for part in images):
        _notify_unnamed_images(images, images_beside(source, endpoint), listed(source.all_uris))
    return images


def _notify_unnamed_images(images: list[SourcePart], beside: list[str], sources: str) -> None:
    """Gives a Notice of image files beside a `metadata.csv` that no row names."""
    named = named_files(images)
    if others := [uri for uri in beside if posixpath.normpath(uri) not in named]:
        notify(
            f"{sources}: {len(others):,} of {len(beside):,} images are left out because no row names them: "
            f"{listed(others)}"
        )


def _are_images(found: list[SourcePart]) -> bool:
    return isinstance(found[0], ImageFiles | IDXFiles)


def _are_tagged(found: list[SourcePart]) -> bool:
    first = found[0]
    return isinstance(first.part if isinstance(first, Partition) else first, ConllFile)
