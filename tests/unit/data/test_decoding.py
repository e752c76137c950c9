"""Images at the size that a network takes: JPEG's own scales, and what is kept for the next pass."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data_specs import image_spec
from PIL import Image

from trainjob.data import fit, prepare_examples
from trainjob.data.preprocessor import PREPROCESSOR_FILE, Preprocessor, load_preprocessor
from trainjob.data.read.rows import RowLocation, Rows
from trainjob.data.row_cache import ENTRY_BYTES, ROW_CACHE, USUAL_BYTES, RowCache
from trainjob.errors import RowError
from trainjob.kinds.inputs.image import ImageInput

SCALED = ImageInput(24, 32, 3, [0.5] * 3, [0.2] * 3, resize=True, as_shown=True, scaled=True)


def photo(size: tuple[int, int] = (320, 240), mode: str = "RGB", turn: int | None = None, seed: int = 0) -> bytes:
    """A smooth picture as a JPEG file."""
    small = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
    image, file = Image.fromarray(small).resize(size, Image.Resampling.BICUBIC).convert(mode), io.BytesIO()
    exif = Image.Exif()
    if turn is not None:
        exif[0x0112] = turn
    image.save(file, "JPEG", quality=90, exif=exif)
    return file.getvalue()


def table(*files: bytes) -> pa.Table:
    return pa.table({"image": pa.array(files, pa.binary())})


def pixels(images: ImageInput, content: bytes) -> np.ndarray:
    return images.transform(table(content)).flatten().to_numpy().reshape(images.height, images.width, -1)


@pytest.mark.parametrize("size", [(320, 240), (321, 239), (3000, 30), (33, 25), (20, 10)])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("turn", [None, 3, 6, 5])
def test_a_scaled_image_looks_like_the_whole_one(size: tuple[int, int], mode: str, turn: int | None):
    content = photo(size, mode, turn)
    scaled, whole = (pixels(images, content).astype(int) for images in (SCALED, replace(SCALED, scaled=False)))
    assert np.abs(scaled - whole).mean() < 2


def test_only_large_images_differ():
    content = photo((60, 45))
    assert np.array_equal(pixels(SCALED, content), pixels(replace(SCALED, scaled=False), content))
    content = photo()
    assert not np.array_equal(pixels(SCALED, content), pixels(replace(SCALED, scaled=False), content))


def test_a_model_of_an_earlier_version_decodes_images_as_a_whole(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for number in range(8):
        (tmp_path / "ab"[number % 2] / f"{number}.jpg").write_bytes(photo(seed=number))
    spec = image_spec(tmp_path, size=(24, 32))
    fit(spec).preprocessor.save(tmp_path)
    file = tmp_path / PREPROCESSOR_FILE
    state = json.loads(file.read_text())
    assert state.pop("scaled")
    file.write_text(json.dumps(state))
    earlier: Preprocessor = load_preprocessor(tmp_path)
    expected = Image.open(io.BytesIO(photo())).resize((32, 24), Image.Resampling.BILINEAR)
    assert np.array_equal(
        earlier.input.transform(table(photo()), str).flatten().to_numpy(), np.asarray(expected).reshape(-1)
    )


def test_what_the_first_pass_decodes_the_second_takes(tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(6):
            mode = "L" if number % 2 else "RGB"
            (tmp_path / name / f"{number}.jpg").write_bytes(photo(mode=mode, seed=number))
    (tmp_path / "b" / "again.jpg").write_bytes(photo(mode="RGB", seed=0))
    spec = image_spec(tmp_path, size=(24, 32))
    expected = prepare_examples(spec, fit(spec))
    with ROW_CACHE.room(2**20):
        fitted = fit(spec)
        assert len(ROW_CACHE) == 7  # the images that differ, and which rows train
        found = prepare_examples(spec, fitted)
        assert len(ROW_CACHE) == 0
    for name, rows in expected.items():
        assert np.array_equal(found[name].values, rows.values)
        np.testing.assert_array_equal(found[name].labels, rows.labels)


def test_the_first_damaged_image_is_told(tmp_path: Path):
    damaged = photo()[:2000]
    rows = Rows(table(photo(), damaged, photo(), damaged), lambda index: RowLocation("file", "image", index))
    with pytest.raises(RowError, match="file, image 1 is not a valid image file"):
        SCALED.check(rows)


def test_no_more_is_kept_than_there_is_room_for():
    cache = RowCache()
    with cache.room(3 * (100 + ENTRY_BYTES)):
        for number in range(5):
            cache.put(number, str(number), 100)
        assert [cache.get(number) for number in range(5)] == [None, None, "2", "3", "4"]
        cache.put(2, "again", 100)
        assert len(cache) == 3
        assert (cache.take(3), cache.take(3)) == ("3", None)
        cache.put("large", "large", USUAL_BYTES)
        assert len(cache) == 0
        cache.put(1, "1", 100)
    assert len(cache) == 0
