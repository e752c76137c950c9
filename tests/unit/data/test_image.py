import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from data_specs import random_images
from PIL import Image

from preprocessors import image_classifier
from trainjob.data import Examples, load_preprocessor
from trainjob.data.read.image_files import image_tensor
from trainjob.errors import DataError
from trainjob.kinds.inputs.image import ImageInput


def preprocessor(channels: int = 1, resize: bool = False) -> ImageInput:
    mean, std = [0.5, 0.25, 0.125][:channels], [0.5, 0.1, 0.2][:channels]
    return ImageInput(6, 5, channels, mean, std, resize)


def encoded(pixels: np.ndarray, ending: str = "png", mode: str | None = None) -> bytes:
    image = Image.fromarray(pixels)
    content = io.BytesIO()
    (image.convert(mode) if mode else image).save(content, ending)
    return content.getvalue()


def files(*contents: bytes) -> pa.Table:
    return pa.table({"image": pa.array(contents, pa.binary())})


def pixels_of(pre: ImageInput, table: pa.Table) -> np.ndarray:
    """uint8 [n, H, W, C]."""
    return np.array(pre.transform(table).to_pylist(), np.uint8).reshape(-1, pre.height, pre.width, pre.channels)


@pytest.mark.parametrize("ending", ["png", "bmp", "tiff"])
def test_files_and_pixels_give_the_same(ending: str) -> None:
    images = random_images(3)
    decoded = pixels_of(preprocessor(), files(*(encoded(image, ending) for image in images)))
    assert np.array_equal(decoded[..., 0], images)
    assert np.array_equal(pixels_of(preprocessor(), pa.table({"image": image_tensor(np.stack(images))})), decoded)
    with_channel = pa.table({"image": image_tensor(np.stack(images)[..., None])})
    assert np.array_equal(pixels_of(preprocessor(), with_channel), decoded)


def test_slices_of_pixels() -> None:
    images = np.stack(random_images(9, (6, 5, 3)))
    table = pa.table({"image": image_tensor(images)})
    taken = pa.concat_tables([table.slice(2, 3), table.take([0, 8])])
    assert np.array_equal(pixels_of(preprocessor(3), taken), images[[2, 3, 4, 0, 8]])
    assert preprocessor(3).contents(taken) == [images[index].tobytes() for index in (2, 3, 4, 0, 8)]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_any_mode_become_grey_or_rgb(mode: str, channels: int) -> None:
    image = random_images(1, (6, 5, 3))[0]
    content = encoded(image, "tiff", mode)
    found = pixels_of(preprocessor(channels), files(content))
    expected = Image.open(io.BytesIO(content)).convert("L" if channels == 1 else "RGB")
    assert np.array_equal(found.reshape(-1), np.asarray(expected).reshape(-1))


def test_an_image_of_another_size_is_refused_or_resized() -> None:
    table = files(encoded(random_images(1, (12, 10))[0]))
    with pytest.raises(
        DataError, match=r"row 1 is 10 x 12 pixels, others are 5 x 6: resize it, or set `size` of the model"
    ):
        preprocessor().transform(table)
    flat = files(encoded(np.full((12, 10), 77, np.uint8)))
    assert set(pixels_of(preprocessor(resize=True), flat).reshape(-1)) == {77}


def test_inputs_are_the_pixels_channel_first() -> None:
    pre = preprocessor(3)
    images = np.stack(random_images(4, (6, 5, 3)))
    values = pre.transform(pa.table({"image": image_tensor(images)}))
    examples = Examples.from_table(pa.table({"values": values, "label": pa.array(range(4), pa.int64())}))
    inputs = pre.batch(examples)["pixel_values"]
    assert inputs.dtype == np.uint8
    assert inputs.flags.c_contiguous
    assert np.array_equal(inputs, images.transpose(0, 3, 1, 2))
    divisor, subtrahend = pre.normalization
    expected = (images / 255 - np.array(pre.mean)) / np.array(pre.std)
    np.testing.assert_allclose(inputs / divisor - subtrahend, expected.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-6)


def test_it_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    made = image_classifier(preprocessor(3, resize=True), ["a", "b"], [3, 4])
    made.save(tmp_path)
    assert load_preprocessor(tmp_path) == made


@pytest.mark.parametrize("content", [b"", b"no image", encoded(random_images(1, (60, 50))[0])[:200]])
def test_a_corrupt_image_is_named(content: bytes) -> None:
    good = encoded(random_images(1, (60, 50))[0])
    with pytest.raises(DataError, match="row 2 is not a valid image file"):
        preprocessor(resize=True).transform(files(good, content))
