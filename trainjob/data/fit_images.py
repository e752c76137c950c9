"""The first pass over images: classes, split and preprocessor."""

from collections.abc import Iterable

import numpy as np
from PIL import Image

from trainjob.api import Dataset, ImageClassifier
from trainjob.data.image import ImagePreprocessor, channels_of, decoded, image_contents, images_of, wrong_size
from trainjob.data.image_processor import PretrainedImagePreprocessor, pretrained_processor
from trainjob.data.rows import Rows
from trainjob.data.split import hashes
from trainjob.data.survey import Division, Sample, divide_by_label
from trainjob.errors import DataError

STATISTICS_ROWS = 10_000


def fit_images(
    dataset: Dataset, model: ImageClassifier, tables: Iterable[Rows], seed: int
) -> tuple[ImagePreprocessor, Division, str]:
    """The preprocessor, which rows train, and a digest of all of them. Raises DataError for what cannot be used."""
    if model.pretrained is not None:
        return _for_pretrained(dataset, model.pretrained, tables, seed)
    size = (model.size.width, model.size.height) if model.size else None
    sample = Sample[np.ndarray](STATISTICS_ROWS)
    channels: list[int] = []

    def visit(rows: Rows) -> np.ndarray:
        nonlocal size
        images = list(images_of(rows.table, rows.where))
        for index, image in enumerate(images):
            size = size or image.size
            if model.size is None and image.size != size:
                raise DataError(wrong_size(rows.where(index), image.size, size))
        channels.extend(map(channels_of, images))
        row_hashes = hashes(image_contents(rows.table), seed)
        sample.add(row_hashes, lambda index: _moments(decoded(images[index], 3, rows.where(index))))
        return row_hashes

    classes, division, digest = divide_by_label(dataset, "label", seed, tables, visit)
    assert size is not None
    depth = int(np.max(np.array(channels)[division.is_training]))
    mean, square = np.mean(sample.items(division.is_training), axis=0)[:, :depth]
    std = np.sqrt(np.maximum(square - mean**2, 0))
    preprocessor = ImagePreprocessor(
        classes=classes,
        class_counts=division.class_counts,
        height=size[1],
        width=size[0],
        channels=depth,
        mean=mean.tolist(),
        std=np.where(std > 0, std, 1).tolist(),
        resize=model.size is not None,
    )
    return preprocessor, division, digest


def _for_pretrained(
    dataset: Dataset, name: str, tables: Iterable[Rows], seed: int
) -> tuple[ImagePreprocessor, Division, str]:
    """The network's own image processor says all but the classes."""
    processor = pretrained_processor(name)

    def visit(rows: Rows) -> np.ndarray:
        for _ in images_of(rows.table, rows.where):  # raises for what is no image
            pass
        return hashes(image_contents(rows.table), seed)

    classes, division, digest = divide_by_label(dataset, "label", seed, tables, visit)
    preprocessor = PretrainedImagePreprocessor.of(processor, classes, division.class_counts)
    return preprocessor, division, digest


def _moments(image: Image.Image) -> np.ndarray:
    """Mean and mean square of each channel in 0 to 1, float64 [2, 3]."""
    pixels = np.asarray(image, np.float32).reshape(-1, 3) / 255
    return np.stack([pixels.mean(0, dtype=np.float64), np.square(pixels).mean(0, dtype=np.float64)])
