"""Proposes an image classifier for data of which nothing is known."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from trainjob.data.read.bad_rows import sound_rows
from trainjob.data.read.image_tables import EmbeddedImages, ListedImages, images_of_tables
from trainjob.data.read.pictures import check_pictures, pictures
from trainjob.data.read.rows import SourcePart, leave_out
from trainjob.errors import DataError
from trainjob.kinds.look import Look, Proposal, Unsuitable

LOOKED_AT = 1000
"""Images whose size is read."""
LARGEST, SMALLEST = 224, 16
"""Pixels a side of images that are resized."""


def propose(look: Look, label: str | None) -> Proposal:
    """Raises Unsuitable for data without images, and where a column has the number of each image."""
    if (several := look.several_labels(label)) is not None:
        fields, why = several
        found = proposal_of("imageClassifier", look, fields.get("label"), fields.get("labels", ()))
        return replace(found, dataset=fields, comments=found.comments | dict.fromkeys(fields, why))
    column = look.columns.get(label_of(look, label) or "")
    if column is not None and column.is_number and column.classes is None:
        raise Unsuitable("the label has fractions or many different numbers, so it is not a class")
    return proposal_of("imageClassifier", look, label)


def label_of(look: Look, label: str | None) -> str | None:
    """The column of a table that has the label of each image. Raises Unsuitable for data without images."""
    parts = _images(look, label)
    return parts[0].columns.label if isinstance(parts[0], EmbeddedImages | ListedImages) else None


def proposal_of(kind: str, look: Look, label: str | None, labels: Sequence[str] = ()) -> Proposal:
    """The proposal of a kind of model that answers images."""
    sizes = list(islice(_sizes(_images(look, label, labels)), LOOKED_AT))
    if not sizes:
        raise Unsuitable("no image can be read")
    model: dict[str, Any] = {"cnn": {}}
    same = len(set(sizes)) == 1
    if not same or max(sizes[0]) > LARGEST or min(sizes[0]) < SMALLEST // 4:
        side = min(LARGEST, max(SMALLEST, sorted(map(max, sizes))[len(sizes) // 2]))
        model["size"] = {"height": side, "width": side}
    shown = "{} x {} pixels".format(*sizes[0]) if same else f"{len(set(sizes)):,} different sizes"
    return Proposal(
        fit=3,
        model={kind: model},
        dataset={} if label is None else {"label": label},
        training={"epochs": 20, "earlyStopping": {"patience": 5}},
        comments={
            "model": "trained from scratch; `pretrained: google/vit-base-patch16-224` instead knows photographs",
        },
        notes=[f"The first {len(sizes):,} images: {shown}."],
    )


def _images(look: Look, label: str | None, labels: Sequence[str] = ()) -> Sequence[SourcePart]:
    if look.has_images:
        return look.parts
    try:
        return images_of_tables(list(look.parts), None, None, label, labelled=True, labels=labels)
    except DataError as error:
        raise Unsuitable(str(error).partition(". ")[0]) from None


def _sizes(found: Iterable[SourcePart]) -> Iterator[tuple[int, int]]:
    """Width and height of each image that can be read."""
    for part in found:
        for rows in part.read(["image", "label"], leave_out):
            sound = rows.take(sound_rows(rows, check_pictures, leave_out))
            yield from (picture.size for picture in pictures(sound.table, sound.where))
