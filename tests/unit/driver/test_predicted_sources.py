"""Sources of predicted rows, and thumbnails of mistakes."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainjob.api import TrainJobSpec
from trainjob.data import Fitted, fit
from trainjob.data.batches.prepare import read_set
from trainjob.data.read.pictures import pictures
from trainjob.driver.predicted_sources import add_sources
from trainjob.evaluation.predictions import ranked_table, with_names
from trainjob.runs.predictions import read_predictions, write_predictions
from trainjob.storage import Folder
from unit.data.data_specs import image_spec, write_images, write_mnist


def shades(count: int) -> list[np.ndarray]:
    """Images of which each is a little brighter than the one before."""
    return [np.full((300, 200), 2 * number, np.uint8) for number in range(count)]


def folder_of_images(folder: Path) -> TrainJobSpec:
    return image_spec(write_images(folder, {"black": shades(30), "white": shades(70)[40:]}))


def idx_files(folder: Path) -> TrainJobSpec:
    return image_spec(write_mnist(folder, np.array(shades(60)), np.arange(60) // 30))


@pytest.mark.parametrize("make", [folder_of_images, idx_files])
def test_the_surest_mistakes_have_thumbnails(tmp_path: Path, make: Callable[[Path], TrainJobSpec]) -> None:
    spec = make(tmp_path / "data")
    fitted = fit(spec)
    classes, run = fitted.preprocessor.target.classes, Folder(str(tmp_path / "run"))
    rows = list(read_set(spec, fitted, "validation"))
    labels = np.concatenate([each for _, each in rows if each is not None])
    wrong = np.arange(len(labels)) % 4 == 0
    best = np.linspace(0.6, 0.9, len(labels))
    ranked = np.stack([np.where(wrong, 1 - labels, labels), np.where(wrong, labels, 1 - labels)], axis=1)
    table = ranked_table(np.arange(len(labels)), ranked, np.stack([best, 1 - best], axis=1), labels)
    write_predictions(run, "model", with_names(table, classes))
    add_sources(spec, run, fitted)
    kept = read_predictions(run, "model").to_pylist()
    assert [line["thumbnail"] is not None for line in kept] == wrong.tolist()
    places = [each.where(index) for each, _ in rows for index in range(len(each.table))]
    assert [(line["file"], line["file_row"]) for line in kept] == [(place.file, place.number) for place in places]
    for line, pixels in zip(kept, pixels_of(spec, fitted), strict=True):
        if line["thumbnail"] is not None:
            image = Image.open(io.BytesIO(line["thumbnail"]))
            assert (image.format, image.size) == ("JPEG", (85, 128))
            assert abs(np.asarray(image).mean() - pixels.mean()) <= 1
            assert len(line["thumbnail"]) < 2000


def pixels_of(spec: TrainJobSpec, fitted: Fitted) -> Iterator[np.ndarray]:
    for rows, _ in read_set(spec, fitted, "validation"):
        for picture in pictures(rows.table, rows.where):
            yield np.asarray(picture.decoded(1))
