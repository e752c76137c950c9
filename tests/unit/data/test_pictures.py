"""Images as viewers show them."""

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from data_specs import image_spec, random_images, write_images
from PIL import ExifTags, Image, ImageOps

from preprocessors import input_of
from trainjob.data import fit, load_preprocessor, prepare_examples
from trainjob.data.read.image_files import image_tensor
from trainjob.data.read.pictures import Picture, pictures
from trainjob.errors import DataError
from trainjob.kinds.inputs.image import ImageInput

PIXELS = np.repeat(np.repeat(np.arange(6, dtype=np.uint8).reshape(2, 3) * 40, 16, axis=0), 16, axis=1)
"""Six areas of different greys, 48 wide and 32 high."""


def file(image: Image.Image, kind: str, orientation: int | None = None, **options: Any) -> bytes:
    content = io.BytesIO()
    if orientation is not None:
        exif = Image.Exif()
        exif[ExifTags.Base.Orientation] = orientation
        options["exif"] = exif
    image.save(content, kind, **options)
    return content.getvalue()


def opened(content: bytes, as_shown: bool = True) -> Picture:
    [picture] = pictures(pa.table({"image": pa.array([content], pa.binary())}), lambda _: "it", as_shown)
    return picture


def pixels(picture: Picture, channels: int = 1) -> np.ndarray:
    return np.asarray(picture.decoded(channels)).astype(int)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "MPO", "PNG", "WEBP", "AVIF", "TIFF"])
def test_every_orientation_is_upright(kind: str, orientation: int) -> None:
    content = file(Image.fromarray(PIXELS).convert("RGB"), kind, orientation)
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("L")
    picture = opened(content)
    assert picture.size == expected.size == ((48, 32) if orientation < 5 else (32, 48))
    assert np.array_equal(pixels(picture), np.asarray(expected))


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "I;16"])
def test_images_of_any_mode_are_turned(mode: str) -> None:
    image = Image.fromarray(PIXELS.astype(np.uint16) * 256) if mode == "I;16" else Image.fromarray(PIXELS).convert(mode)
    picture = opened(file(image, "PNG", 6))
    assert picture.size == (32, 48)
    upright = pixels(opened(file(image, "PNG")))
    assert np.array_equal(pixels(picture), np.rot90(upright, -1))


@pytest.mark.parametrize("orientation", [0, 9, 77])
def test_orientations_that_do_not_exist_are_none(orientation: int) -> None:
    assert np.array_equal(pixels(opened(file(Image.fromarray(PIXELS), "PNG", orientation))), PIXELS)


def test_damaged_exif_data_is_ignored() -> None:
    content = file(Image.fromarray(PIXELS), "JPEG", 6)
    start = content.index(b"Exif\0\0") + 6
    for place in range(start, start + 20):
        damaged = content[:place] + b"\xff" + content[place + 1 :]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert opened(damaged).size in [(48, 32), (32, 48)]


def test_orientation_in_the_end_of_a_png_file() -> None:
    """Writers may put it between the pixels and the end."""
    content = file(Image.fromarray(PIXELS), "PNG", 6)
    start = content.index(b"eXIf") - 4
    size = 12 + int.from_bytes(content[start : start + 4])
    chunk, rest = content[start : start + size], content[:start] + content[start + size :]
    end = rest.index(b"IEND") - 4
    assert opened(rest[:end] + chunk + rest[end:]).size == (32, 48)


HALF = np.array([[0, 255], [128, 255]], np.uint8)


def translucent(mode: str) -> bytes:
    """Black pixels with the alpha of HALF, as a PNG file; "P" and "L" know but one transparent value."""
    if mode == "LA":
        return file(Image.merge("LA", [Image.new("L", (2, 2)), Image.fromarray(HALF)]), "PNG")
    if mode == "RGBA":
        return file(Image.merge("RGBA", [*[Image.new("L", (2, 2))] * 3, Image.fromarray(HALF)]), "PNG")
    if mode == "P":
        image = Image.fromarray(np.array([[0, 1], [2, 1]], np.uint8), "P")
        image.putpalette([0, 0, 0] * 3)
        return file(image, "PNG", transparency=bytes([0, 255, 128]))
    image = Image.fromarray(np.array([[7, 0], [0, 0]], np.uint8 if mode != "I;16" else np.uint16))
    if mode == "RGB":
        return file(image.convert("RGB"), "PNG", transparency=(7, 7, 7))
    return file(image, "PNG", transparency=7)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", ["LA", "RGBA", "P", "L", "RGB", "I;16"])
def test_transparent_parts_are_white(mode: str, channels: int) -> None:
    picture = opened(translucent(mode))
    assert picture.has_alpha
    assert picture.channels == (3 if mode in ("RGBA", "P", "RGB") else 1)
    found = pixels(picture, channels).reshape(2, 2, channels)
    partly = 127 if mode in ("LA", "RGBA", "P") else 0
    assert np.abs(found - np.array([[255, 0], [partly, 0]])[..., None]).max() <= 1


def test_pixels_with_an_alpha_channel() -> None:
    images = np.dstack([np.zeros((2, 2, 3), np.uint8), HALF])[None]
    [picture] = pictures(pa.table({"image": image_tensor(images)}), lambda _: "it")
    assert pixels(picture).tolist() == [[255, 0], [127, 0]]


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_grey_images_of_16_bits_are_scaled(kind: str) -> None:
    ramp = np.arange(0, 65536, 257, dtype=np.uint16).reshape(16, 16)
    assert np.array_equal(pixels(opened(file(Image.fromarray(ramp), kind))), np.arange(256).reshape(16, 16))


def test_images_of_32_bits_are_refused() -> None:
    deep = Image.fromarray(np.array([[0, 70_000]], np.int32))
    with pytest.raises(DataError, match=r"it has gray values from 0 to 70,000; only images with up to 16 bits"):
        opened(file(deep, "TIFF")).decoded(1)


def test_models_of_earlier_versions_see_images_as_they_are_stored(tmp_path: Path) -> None:
    content = file(Image.fromarray(PIXELS), "JPEG", 6)
    stored = opened(content, as_shown=False)
    assert stored.size == (48, 32)
    assert pixels(opened(translucent("RGBA"), as_shown=False)).tolist() == [[0, 0], [0, 0]]
    saved = '{"kind": "image", "classes": ["a"], "class_counts": [1], "height": 32, "width": 48, "channels": 1, '
    (tmp_path / "preprocessor.json").write_text(saved + '"mean": [0.5], "std": [1.0], "resize": false}')
    preprocessor = input_of(load_preprocessor(tmp_path), ImageInput)
    row = preprocessor.transform(pa.table({"image": pa.array([content], pa.binary())})).to_pylist()[0]
    assert np.array_equal(np.reshape(row, (32, 48)), pixels(stored))


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "AVIF", "TIFF", "MPO"])
def test_the_first_of_several_frames_is_used(kind: str) -> None:
    first, *others = (Image.fromarray(PIXELS // part).convert("RGB") for part in (1, 2, 3))
    single = "JPEG" if kind == "MPO" else kind
    assert not opened(file(first, single)).has_frames
    content = file(first, kind, save_all=True, append_images=others)
    picture = opened(content)
    assert picture.has_frames == (kind != "MPO")
    assert np.array_equal(pixels(picture), np.asarray(Image.open(io.BytesIO(content)).convert("L")))


def test_a_damaged_second_frame_is_nothing_to_fail_for() -> None:
    content = file(Image.fromarray(PIXELS), "GIF", save_all=True, append_images=[Image.fromarray(PIXELS // 2)])
    assert all(isinstance(opened(content[:end]).has_frames, bool) for end in range(len(content) // 2, len(content), 7))


def test_training_sees_pictures_as_they_are_shown_and_says_so(tmp_path: Path) -> None:
    """The same picture, upright and as a phone stores it."""
    write_images(tmp_path, {name: random_images(4, (6, 5), seed) for seed, name in enumerate("ab")})
    image = Image.fromarray(PIXELS).resize((5, 6))
    turned = image.transpose(Image.Transpose.ROTATE_90)
    (tmp_path / "a" / "upright.png").write_bytes(file(image, "PNG"))
    (tmp_path / "a" / "turned.png").write_bytes(file(turned, "PNG", 6))
    (tmp_path / "b" / "clear.png").write_bytes(file(Image.new("LA", (5, 6)), "PNG"))
    (tmp_path / "b" / "moving.png").write_bytes(
        file(image, "PNG", save_all=True, append_images=[turned.resize((5, 6))])
    )
    spec = image_spec(tmp_path, validation={"uri": str(tmp_path)})
    fitted = fit(spec)
    assert fitted.profile is not None
    assert fitted.profile.notes == [
        "1 of 12 images have transparency: transparent parts are white",
        "1 of 12 images are turned upright, as their EXIF data says",
        "1 of 12 images have several frames or pages: only the first is used",
    ]
    assert set(fitted.profile.notes) <= {remark.text for remark in fitted.profile.remarks}
    examples = prepare_examples(spec, fitted)["train"]
    rows = [row.tobytes() for row in examples.values.reshape(12, -1)]
    assert rows.count(np.asarray(image).tobytes()) == 3
    assert bytes([255]) * 30 in rows
