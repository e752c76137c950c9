"""Proposes a model of images for unknown data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from trainjob.data.read.bad_rows import valid_rows
from trainjob.data.read.image_columns import ImageColumns
from trainjob.data.read.image_tables import EmbeddedImages, ListedImages, images_of_tables
from trainjob.data.read.pictures import check_pictures, pictures
from trainjob.data.read.rows import SourcePart, leave_out
from trainjob.errors import DataError
from trainjob.kinds.data_preview import SURE, DataPreview, Proposal, Unsuitable

MAX_IMAGES = 1000
"""The most images whose size is read."""
MAX_SIDE, MIN_SIDE = 224, 16
"""Pixels on each side of images that are resized."""


def beside_images(preview: DataPreview) -> DataPreview:
    """The other columns of a table with a column of images. Raises Unsuitable where there is none."""
    if preview.has_images:
        raise Unsuitable("the data is not a table with a column of images")
    chosen = _columns(_images(preview, labelled=False))
    columns = {name: each for name, each in preview.columns.items() if name != chosen.image}
    nested = {name: each for name, each in preview.nested.items() if name != chosen.image}
    named_labels = preview.named_labels
    if not named_labels:
        with suppress(Unsuitable):
            named_labels = _columns(_images(preview, labelled=True)).of_labels
    return replace(preview, named_labels=named_labels, columns=columns, nested=nested)


def _columns(found: Sequence[SourcePart]) -> ImageColumns:
    part = found[0]
    assert isinstance(part, EmbeddedImages | ListedImages)
    return part.columns


def image_proposal(kind: str, preview: DataPreview, fields: Mapping[str, Any], why: str) -> Proposal:
    """The proposal of a kind of model that answers images, with these fields of the dataset."""
    parts = _images(preview, True, fields.get("label"), fields.get("labels", ()))
    sizes = list(islice(_sizes(parts), MAX_IMAGES))
    if not sizes:
        raise Unsuitable("no image can be read")
    model: dict[str, Any] = {"cnn": {}}
    same = len(set(sizes)) == 1
    if not same or max(sizes[0]) > MAX_SIDE or min(sizes[0]) < MIN_SIDE // 4:
        side = min(MAX_SIDE, max(MIN_SIDE, sorted(map(max, sizes))[len(sizes) // 2]))
        model["size"] = {"height": side, "width": side}
    shown = "{} x {} pixels".format(*sizes[0]) if same else f"{len(set(sizes)):,} different sizes"
    return Proposal(
        confidence=SURE,
        model={kind: model},
        dataset=dict(fields),
        training={"epochs": 20, "earlyStopping": {"patience": 5}},
        comments={
            "model": "trained from scratch; `pretrained: google/vit-base-patch16-224` instead knows photographs",
            **dict.fromkeys(fields, why),
        },
        notes=[f"The first {len(sizes):,} images: {shown}."],
    )


def _images(
    preview: DataPreview, labelled: bool, label: str | None = None, labels: Sequence[str] = ()
) -> Sequence[SourcePart]:
    if preview.has_images:
        return preview.parts
    try:
        return images_of_tables(list(preview.parts), None, None, label, labelled, labels)
    except DataError as error:
        raise Unsuitable(str(error).partition(". ")[0]) from None


def _sizes(found: Iterable[SourcePart]) -> Iterator[tuple[int, int]]:
    """Width and height of each image that can be read."""
    for part in found:
        for rows in part.read(["image", "label"], leave_out):
            valid = rows.take(valid_rows(rows, check_pictures, leave_out))
            yield from (picture.size for picture in pictures(valid.table, valid.where))
