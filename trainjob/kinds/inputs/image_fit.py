"""The first pass over images: target, split and preprocessor."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from trainjob.api import Dataset, ImageNetwork
from trainjob.data.first_pass.split import hashes
from trainjob.data.first_pass.survey import FittedOn, LabelReader, ScannedRows, ScanPlan, nothing, take_survey
from trainjob.data.read.bad_rows import BadRows, valid_rows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.pictures import (
    ALPHA,
    BACKGROUND,
    CHANNELS,
    FRAMES,
    TURNED,
    Picture,
    check_pictures,
    pictures,
)
from trainjob.data.read.rows import Rows, SourcePart, leave_out
from trainjob.kinds.inputs.decoding import ImageDecoder
from trainjob.kinds.inputs.image import ImageInput, check_size, image_contents
from trainjob.kinds.inputs.image_processor import PretrainedImageInput, check_shape, pretrained_processor

STATISTICS_ROWS = 10_000
LABEL = "label"
"""The name that readers of images give to the column of labels, whatever its name in the table."""
COLUMNS = ["image", LABEL]


def fit_images(
    labels: LabelReader,
    dataset: Dataset,
    model: ImageNetwork,
    train: Sequence[SourcePart],
    seed: int,
    mapper: Mapper,
    bad: BadRows,
) -> FittedOn:
    """`labels` reads the column LABEL. Unusable images are counted in `bad`. Raises DataError if no model can be
    fitted."""
    if model.pretrained is not None:
        return _for_pretrained(labels, dataset, model, train, seed, mapper, bad)
    size = (model.size.width, model.size.height) if model.size else _first_size(train)
    check = partial(check_size, size=size) if model.size is None else _any_size
    decoder = ImageDecoder(*size, channels=None, check=check)

    def scan(rows: Rows) -> ScannedRows[np.ndarray]:
        found = decoder.decode(rows.table, rows.where)
        return ScannedRows(
            hashes(image_contents(rows.table), seed),
            lambda index: _moments(found[index].pixels),
            np.array([image.marks for image in found], np.uint8),
        )

    plan = ScanPlan(COLUMNS, labels, scan, STATISTICS_ROWS, lambda rows: decoder.decode(rows.table, rows.where))
    survey, target = take_survey(dataset, train, plan, mapper, bad)
    division = survey.divide(target, dataset.validation.fraction, seed)
    depth = int(np.max(survey.marks[division.is_training] & CHANNELS))
    mean, square = np.mean(survey.sample.items(division.is_training), axis=0)[:, :depth]
    std = np.sqrt(np.maximum(square - mean**2, 0))
    images = ImageInput(
        height=size[1],
        width=size[0],
        channels=depth,
        mean=mean.tolist(),
        std=np.where(std > 0, std, 1).tolist(),
        resize=model.size is not None,
        as_shown=True,
        scaled=True,
    )
    return FittedOn(images, division, survey.digest(target), notes=_notes(survey.marks))


def _first_size(train: Sequence[SourcePart]) -> tuple[int, int]:
    """Width and height of the first valid image, which all others must have; 0 where there are none."""
    for part in train:
        for rows in part.read(COLUMNS, leave_out):
            valid = rows.take(valid_rows(rows, check_pictures, leave_out))
            for picture in pictures(valid.table, valid.where):
                return picture.size
    return 0, 0


def _for_pretrained(
    labels: LabelReader,
    dataset: Dataset,
    model: ImageNetwork,
    train: Sequence[SourcePart],
    seed: int,
    mapper: Mapper,
    bad: BadRows,
) -> FittedOn:
    """Fits only the target; the network's image processor determines the rest."""
    assert model.pretrained is not None
    processor = pretrained_processor(model.pretrained, f"{model.path}.pretrained")

    def scan(rows: Rows) -> ScannedRows[None]:
        marks = np.array([picture.marks for picture in pictures(rows.table, rows.where)], np.uint8)
        return ScannedRows(hashes(image_contents(rows.table), seed), nothing, marks)

    plan = ScanPlan(COLUMNS, labels, scan, check=partial(check_pictures, check=check_shape))
    survey, target = take_survey(dataset, train, plan, mapper, bad)
    division = survey.divide(target, dataset.validation.fraction, seed)
    return FittedOn(PretrainedImageInput.of(processor), division, survey.digest(target), notes=_notes(survey.marks))


def _notes(marks: np.ndarray) -> list[str]:
    """Notes on the treatment of images with these marks, uint8 [n]."""
    alpha, turned, frames = (int(np.count_nonzero(marks & bit)) for bit in (ALPHA, TURNED, FRAMES))
    notes: list[str] = []
    if alpha:
        notes.append(f"{alpha:,} of {len(marks):,} images have transparency: transparent parts are {BACKGROUND}")
    if turned:
        notes.append(f"{turned:,} of {len(marks):,} images are turned upright, as their EXIF data says")
    if frames:
        notes.append(f"{frames:,} of {len(marks):,} images have several frames or pages: only the first is used")
    return notes


def _any_size(_: Picture) -> None:
    """Accepts every image, which will be resized."""


def _moments(pixels: np.ndarray) -> np.ndarray:
    """Mean and mean square of each channel in 0 to 1, float64 [2, 3], of pixels uint8 [H, W] or [H, W, 3]."""
    levels = np.arange(256) / 255
    channels = pixels.reshape(-1, pixels.size // (pixels.shape[0] * pixels.shape[1]))
    shares = np.stack([np.bincount(channel, minlength=256) for channel in channels.T]) / len(channels)
    return np.broadcast_to(np.stack([shares @ levels, shares @ levels**2]), (2, 3))
