"""Finds the columns of a table that hold images, or their paths, and labels."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from trainjob.data.read.hub_features import HubFeatures, class_names, hub_features
from trainjob.data.read.label_lists import JoinColumns, with_lists
from trainjob.data.read.rows import SourcePart, check_columns
from trainjob.data.read.table_schema import table_schema
from trainjob.errors import DataError

_NAMES_OF_IMAGES = ("image", "img", "picture", "photo", "file", "path")
_NAMES_OF_PATHS = tuple(f"{name}{end}" for name in _NAMES_OF_IMAGES for end in ("name", "path", "file", "filename"))
_NAMES_OF_LABELS = ("label", "labels", "class", "classname", "category", "target")


@dataclass(frozen=True)
class ImageColumns:
    """The columns of one table."""

    image: str
    label: str | None
    """None if rows need no label."""
    is_path: bool
    """Whether `image` holds paths of image files rather than the files."""
    class_names: tuple[str, ...] | None = None
    """Names of the label's numbers, if the Hugging Face hub's `datasets` wrote them."""
    labels: tuple[str, ...] = ()
    """Columns instead of the label, one for each of several labels."""
    join: JoinColumns = with_lists
    """Joins these columns into one."""

    @property
    def of_labels(self) -> list[str]:
        """The columns that hold the label, or labels."""
        return list(self.labels) if self.label is None else [self.label]


def image_columns(
    part: SourcePart,
    image: str | None,
    label: str | None,
    labelled: bool,
    labels: Sequence[str] = (),
    join: JoinColumns = with_lists,
) -> ImageColumns:
    """The named columns of a part of a table, or else those that are likely. Rows that are not `labelled` need no
    label, nor do those with a column for each of several `labels`.

    Raises DataError with the line to write, if there are none or several.
    """
    schema = table_schema(part)
    wanted = [label, *labels] if labelled else []
    check_columns([name for name in (image, *wanted) if name], schema.names, part.uri)
    features = hub_features(schema)
    image = image or _only(_likely_images(schema), "image", schema, part.uri)
    if labelled and label is None and not labels:
        others = [name for name in schema.names if name != image]
        label = _only(_likely_labels(others, features), "label", schema, part.uri)
    if not labelled:
        label = None
    is_path = _is_text(schema.field(image).type)
    if not is_path and not _is_image(schema.field(image).type):
        kind = schema.field(image).type
        hint = "each row has one image" if pa.types.is_list(kind) or pa.types.is_large_list(kind) else "name another"
        raise DataError(
            f'{part.uri}: the column "{image}" contains {kind}, neither images (bytes, or a struct of bytes and path) '
            f"nor paths of images: {hint} with dataset.image"
        )
    separate = tuple(labels) if labelled else ()
    return ImageColumns(image, label, is_path, class_names(features, label or ""), separate, join)


def _likely_images(schema: pa.Schema) -> list[str]:
    """Image columns in the hub's format, or else columns of bytes, or else text columns named like an image or a
    path."""
    images = [field.name for field in schema if _is_image(field.type)]
    structs = [name for name in images if pa.types.is_struct(schema.field(name).type)]
    texts = [field.name for field in schema if _is_text(field.type)]
    return structs or images or _called(texts, (*_NAMES_OF_IMAGES, *_NAMES_OF_PATHS))


def _likely_labels(names: Sequence[str], features: HubFeatures) -> list[str]:
    """ClassLabel columns in the hub's format, or else columns named like a label."""
    of_hub = [name for name in names if features.get(name, {}).get("_type") == "ClassLabel"]
    return of_hub or _called(names, _NAMES_OF_LABELS)


def _called(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    return [column for column in columns if re.sub(r"[^a-z]", "", column.lower()) in names]


def _only(likely: list[str], kind: str, schema: pa.Schema, uri: str) -> str:
    """The only column, or the one named `kind`."""
    if kind in likely:
        return kind
    if len(likely) == 1:
        return likely[0]
    names = ", ".join(schema.names) or "none"
    if likely:
        problem = f"the columns {' and '.join(likely)} could each be the {kind}"
    elif kind == "image":
        problem = f"none of the columns looks like images or their paths; it has {names}"
    else:
        problem = f"none of the columns looks like the label; it has {names}"
    if kind == "image":
        hint = "A table for images has a column of image files as bytes, or of their paths"
    else:
        hint = "Each image needs a label"
    example = likely[0] if likely else "COLUMN"
    raise DataError(f"{uri}: {problem}. {hint}: name it, `dataset: {{{kind}: {example}}}`, or call it {kind}")


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_image(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        return any(
            field.name == "bytes" and (_is_image(field.type) or pa.types.is_null(field.type)) for field in kind.fields
        )
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
