"""Turns URIs into parts to read: chooses the files of one format, and a reader for each of them."""

import hashlib
import mimetypes
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from trainjob.api import Dataset, Source
from trainjob.data.read.conll import ConllFile
from trainjob.data.read.formats import common_format, format_of, is_metadata, of_format
from trainjob.data.read.image_files import IDXFiles, ImageFiles
from trainjob.data.read.json_lines import JSONLinesFile
from trainjob.data.read.lfs_pointer import POINTER, POINTER_ADVICE, POINTER_BYTES, is_pointer
from trainjob.data.read.listing import File, Listing, find, is_marker
from trainjob.data.read.opening import open_seekable, readable
from trainjob.data.read.partitions import partitioned
from trainjob.data.read.rows import SourcePart
from trainjob.data.read.tables import CSVFile, ParquetRows
from trainjob.errors import DataError, listed, notify
from trainjob.storage import concurrently

UNLABELLED = "unlabelled"
"""The set whose rows are labeled by a teacher for training."""
IMAGES_PER_PART = 64


def parts(
    source: Source,
    endpoint: str | None,
    labelled: bool = True,
    nested: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> list[SourcePart]:
    """Readers of `source`, URI by URI, in an order that depends on names alone.

    Images that are not `labelled` may be outside of class folders, and such rows of annotation tools without an answer;
    `nested` columns may hold lists and objects, and `optional` columns may be missing. Tells the user which files of a
    folder are left out.

    Raises DataError if there is nothing, if the format is unclear, or if two URIs name the same file; StorageError if a
    URI cannot be reached.
    """
    kind, listings = _chosen(source, endpoint)
    nested, optional = tuple(nested), tuple(optional)
    files = [file for listing in listings for file in listing.files]
    if kind == "csv":
        return [
            partitioned(CSVFile(file.uri, endpoint, file.size, optional, is_first=file is files[0]), file.name)
            for file in files
        ]
    if kind == "parquet":
        whole = [ParquetRows(file.uri, endpoint, file.size, nested=nested, optional=optional) for file in files]
        split = concurrently(ParquetRows.split, whole)
        return [partitioned(share, file.name) for file, shares in zip(files, split, strict=True) for share in shares]
    return [part for listing in listings for part in _parts(kind, listing, endpoint, labelled, nested, optional)]


def _parts(
    kind: str,
    listing: Listing,
    endpoint: str | None,
    labelled: bool,
    nested: tuple[str, ...],
    optional: tuple[str, ...],
) -> Sequence[SourcePart]:
    if kind == "mnist":
        return [_idx(listing.files, listing.uri, endpoint)]
    if kind == "images":
        if not listing.is_folder:
            raise DataError(f"{listing.uri} must be a folder with a folder of images for each class")
        return _image_parts(listing.files, listing.uri.rstrip("/"), endpoint, labelled)
    if kind == "conll":
        return [partitioned(ConllFile(file.uri, endpoint, file.size, optional), file.name) for file in listing.files]
    return [
        partitioned(JSONLinesFile(file.uri, endpoint, file.size, nested, optional, labelled), file.name)
        for file in listing.files
    ]


def sources_of(dataset: Dataset) -> dict[str, Source]:
    """The sources of `train`, of `validation` unless it is set aside from `train`, and of `test` and `unlabelled` if
    there are any."""
    sources = {"train": dataset.train}
    validation = dataset.validation
    if validation.fraction is None:
        sources["validation"] = Source(uri=validation.uri, uris=validation.uris, format=dataset.train.format)
    if dataset.test is not None:
        sources["test"] = dataset.test
    if dataset.unlabelled is not None:
        sources[UNLABELLED] = dataset.unlabelled
    return sources


def files_of(source: Source, endpoint: str | None) -> list[File]:
    """The files that `parts` reads, by URI and name, and the images beside a `metadata.csv`. Of IDX files, only those
    of images."""
    _, listings = _chosen(source, endpoint)
    return [file for listing in listings for file in [*listing.files, *listing.images]]


def images_beside(source: Source, endpoint: str | None) -> list[str]:
    """URIs of the images beside a `metadata.csv`."""
    _, listings = _chosen(source, endpoint)
    return [file.uri for listing in listings for file in listing.images]


def _chosen(source: Source, endpoint: str | None) -> tuple[str, list[Listing]]:
    """The format, and the files of each URI, without those that are left out of folders."""
    listings = concurrently(lambda uri: find(uri, endpoint), source.all_uris)
    names = [file.name for listing in listings for file in listing.data]
    kind = source.format or common_format(names, source.all_uris)
    chosen = [_of_format(listing, kind) if listing.is_folder else listing for listing in listings]
    if len(chosen) > 1:
        _refuse_repeated(chosen)
    if kind != "images":  # whose contents are looked at one by one
        _refuse_pointers([file for listing in chosen for file in listing.files], endpoint)
    return kind, chosen


def _of_format(folder: Listing, kind: str) -> Listing:
    """The folder with only the files of this format."""
    names = set(of_format([file.name for file in folder.files], kind))
    files = [file for file in folder.files if file.name in names] or folder.files
    if kind == "images":
        _refuse_strange_images(folder.files, folder.uri)
    else:
        files = [file for file in files if not is_marker(file.name)]
    images: list[File] = []
    if all(is_metadata(file.name) for file in files):
        images = [file for file in folder.files if format_of(file.name) == "images"]
    left_out = sorted({file.name for file in folder.files} - {file.name for file in [*files, *images]})
    if left := [name for name in left_out if format_of(name) == kind or not is_marker(name)]:
        notify(f"{folder.uri}: left out {listed(left)}")
    if not files:
        raise DataError(f"{folder.uri}: the folder has no files; correct the URI")
    return replace(folder, files=files, images=images)


def _refuse_repeated(listings: Iterable[Listing]) -> None:
    """Raises DataError where two URIs hold the same file."""
    first: dict[str, str] = {}
    for listing in listings:
        for file in listing.files:
            other = first.setdefault(identity(file.uri), listing.uri)
            if other != listing.uri:
                raise DataError(
                    f"{file.uri} is named twice, by {other} and by {listing.uri}: its rows would count twice; correct "
                    "the list `uris`"
                )


def _refuse_pointers(files: Iterable[File], endpoint: str | None) -> None:
    """Raises DataError where some of the files are pointers of Git LFS."""

    def is_pointer_file(file: File) -> bool:
        with readable(file.uri, "data"), open_seekable(file.uri, endpoint) as content:
            return is_pointer(content.read())

    small = [file for file in files if 0 < file.size < POINTER_BYTES]
    found = concurrently(is_pointer_file, small)
    pointers = [file.uri for file, is_one in zip(small, found, strict=True) if is_one]
    if pointers:
        raise DataError(f"{pointers[0]} is {POINTER}{_others(len(pointers) - 1)}: {POINTER_ADVICE}")


def _others(number: int) -> str:
    return f", and so {'is one more' if number == 1 else f'are {number:,} more'}" if number else ""


def identity(uri: str) -> str:
    """A URI as a key: equal for all paths of one file on this machine."""
    path = urlsplit(uri).path if uri.startswith("file:") else uri
    return path if "://" in path else os.path.realpath(path)


def _refuse_strange_images(files: Iterable[File], uri: str) -> None:
    strange = [
        file.name
        for file in files
        if format_of(file.name) != "images" and (mimetypes.guess_type(file.name)[0] or "").startswith("image/")
    ]
    if strange:
        raise DataError(f"{uri}: images in an unsupported format: {listed(strange)}; convert them, as to PNG")


def _image_parts(files: list[File], uri: str, endpoint: str | None, labelled: bool) -> list[SourcePart]:
    loose = [file.name for file in files if "/" not in file.name]
    if loose and labelled:
        raise DataError(f"{uri}/{loose[0]} is not in a class folder: images belong in {uri}/<class>/")
    # By a hash of the name, so that each stretch of the stream has images of every class.
    files = sorted(files, key=lambda file: hashlib.blake2b(file.name.encode(), digest_size=8).digest())
    chunks = (files[start : start + IMAGES_PER_PART] for start in range(0, len(files), IMAGES_PER_PART))
    return [
        ImageFiles(uri, endpoint, sum(file.size for file in chunk), tuple(file.name for file in chunk))
        for chunk in chunks
    ]


def _idx(files: list[File], uri: str, endpoint: str | None) -> IDXFiles:
    images = [file for file in files if "images" in file.name]
    if len(images) != 1:
        found = ", ".join(file.name for file in images) or "none"
        raise DataError(f"{uri}: name one IDX file of images, such as train-images-idx3-ubyte.gz; found {found}")
    folder, slash, name = images[0].uri.rpartition("/")
    labels = folder + slash + name.replace("images", "labels").replace("idx3", "idx1").replace("idx4", "idx1")
    return IDXFiles(images[0].uri, labels, endpoint, images[0].size)
