"""The first pass over images: classes, split and preprocessor."""

from collections.abc import Sequence

import numpy as np
from PIL import Image

from trainjob.api import Dataset, ImageClassifier
from trainjob.data.image import ImagePreprocessor, channels_of, decoded, image_contents, images_of, wrong_size
from trainjob.data.image_processor import PretrainedImagePreprocessor, pretrained_processor
from trainjob.data.rows import Part, Rows
from trainjob.data.split import hashes
from trainjob.data.survey import Division, Look, Seen, nothing, survey_classes
from trainjob.data.tasks import Mapper
from trainjob.errors import DataError

STATISTICS_ROWS = 10_000
COLUMNS = ["image", "label"]


def fit_images(
    dataset: Dataset, model: ImageClassifier, train: Sequence[Part], seed: int, mapped: Mapper
) -> tuple[ImagePreprocessor, Division, str]:
    """The preprocessor, which rows train, and a digest of all of them. Raises DataError for what cannot be used."""
    if model.pretrained is not None:
        return _for_pretrained(dataset, model.pretrained, train, seed, mapped)
    size = (model.size.width, model.size.height) if model.size else _first_size(train)

    def see(rows: Rows) -> Seen[np.ndarray]:
        images = list(images_of(rows.table, rows.where))
        for index, image in enumerate(images):
            if model.size is None and image.size != size:
                raise DataError(wrong_size(rows.where(index), image.size, size))
        return Seen(
            hashes(image_contents(rows.table), seed),
            lambda index: _moments(decoded(images[index], 3, rows.where(index))),
            np.array([channels_of(image) for image in images], np.uint8),
        )

    survey = survey_classes(dataset, train, Look(COLUMNS, "label", see, STATISTICS_ROWS), mapped)
    division = survey.divide(dataset.validation.fraction, seed)
    depth = int(np.max(survey.marks[division.is_training]))
    mean, square = np.mean(survey.sample.items(division.is_training), axis=0)[:, :depth]
    std = np.sqrt(np.maximum(square - mean**2, 0))
    preprocessor = ImagePreprocessor(
        classes=survey.classes,
        class_counts=division.class_counts,
        height=size[1],
        width=size[0],
        channels=depth,
        mean=mean.tolist(),
        std=np.where(std > 0, std, 1).tolist(),
        resize=model.size is not None,
    )
    return preprocessor, division, survey.digest


def _first_size(train: Sequence[Part]) -> tuple[int, int]:
    """Width and height of the first image, which all others must have; 0 where there are none."""
    tables = (rows for part in train for rows in part.read(COLUMNS))
    images = (image for rows in tables for image in images_of(rows.table, rows.where))
    return next((image.size for image in images), (0, 0))


def _for_pretrained(
    dataset: Dataset, name: str, train: Sequence[Part], seed: int, mapped: Mapper
) -> tuple[ImagePreprocessor, Division, str]:
    """The network's own image processor says all but the classes."""
    processor = pretrained_processor(name)

    def see(rows: Rows) -> Seen[None]:
        for _ in images_of(rows.table, rows.where):  # raises for what is no image
            pass
        return Seen(hashes(image_contents(rows.table), seed), nothing)

    survey = survey_classes(dataset, train, Look(COLUMNS, "label", see), mapped)
    division = survey.divide(dataset.validation.fraction, seed)
    preprocessor = PretrainedImagePreprocessor.of(processor, survey.classes, division.class_counts)
    return preprocessor, division, survey.digest


def _moments(image: Image.Image) -> np.ndarray:
    """Mean and mean square of each channel in 0 to 1, float64 [2, 3]."""
    pixels = np.asarray(image, np.float32).reshape(-1, 3) / 255
    return np.stack([pixels.mean(0, dtype=np.float64), np.square(pixels).mean(0, dtype=np.float64)])
