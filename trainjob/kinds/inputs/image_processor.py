"""Converts images to the input of a pretrained network with its image processor from transformers."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from PIL import Image

from trainjob.data.read.pictures import Picture, check_pictures, on_all_cores, opened
from trainjob.data.read.rows import Rows
from trainjob.errors import DataError, RowError
from trainjob.kinds.inputs.image import ImageInput
from trainjob.pretrained.hub import is_cached_only
from trainjob.scratch import scratch_folder

PROCESSOR_FILE = "preprocessor_config.json"
"""The file's name in transformers."""
MAX_RATIO_OF_SIDES = 32
"""Largest ratio of an image's sides: many processors scale the shorter side to a fixed size."""
_PROBES = ((640, 480), (480, 640))


@dataclass(frozen=True)
class PretrainedImageInput(ImageInput):
    """Resizes and crops images with transformers' image processor, all as RGB. `mean` and `std` are its normalization,
    so that a network gets the same pixels as with transformers."""

    processor: str
    """The content of `PROCESSOR_FILE`."""

    @classmethod
    def of(cls, processor: "Processor") -> Self:
        return cls(
            height=processor.height,
            width=processor.width,
            channels=3,
            mean=(-processor.shift / (255 * processor.scale)).tolist(),
            std=(1 / (255 * processor.scale)).tolist(),
            resize=True,
            as_shown=True,
            processor=processor.config,
        )

    def _check(self, picture: Picture) -> None:
        check_shape(picture)

    def check(self, rows: Rows) -> None:
        check_pictures(rows, self._check)

    def _pixels(self, table: pa.Table, where: Callable[[int], str]) -> list[np.ndarray]:
        processor = _loaded(self.processor)

        def processed(image: bytes | np.ndarray, where: str) -> np.ndarray:
            picture = opened(image, where, self.as_shown)
            self._check(picture)
            return processor.pixels(picture.decoded(3))

        return on_all_cores(processed, table, where)

    def save(self, folder: Path) -> dict[str, Any]:
        """Also writes, for transformers too, preprocessor_config.json."""
        state: dict[str, Any] = {"pretrained": True, **asdict(self)}
        (folder / PROCESSOR_FILE).write_text(state.pop("processor"))
        return state

    @classmethod
    def load(cls, folder: Path, state: dict[str, Any]) -> Self:
        """The input that was saved with these fields of preprocessor.json."""
        file = folder / PROCESSOR_FILE
        if not file.is_file():
            raise DataError(f"{folder} has no {PROCESSOR_FILE}: the model is incomplete")
        return cls(**state, processor=file.read_text())


def check_shape(picture: Picture) -> None:
    """Raises RowError for an image that is too narrow."""
    width, height = picture.size
    if max(width, height) > MAX_RATIO_OF_SIDES * min(width, height):
        found = f"{width} x {height} pixels"
        kind = f"one side is more than {MAX_RATIO_OF_SIDES} times as long as the other"
        raise RowError(
            f"{picture.where} is {found}: when images are resized for a pretrained network, no side may be "
            f"more than {MAX_RATIO_OF_SIDES} times as long as the other",
            picture.where,
            kind,
            found,
        )


class Processor:
    """An image processor of transformers: geometry, then a linear function of each channel. The function is measured
    here."""

    def __init__(self, processor: Any) -> None:
        """Raises ValueError if the processor does anything else, or if its images differ in shape."""
        self.config: str = processor.to_json_string()
        self._processor = processor
        black, white = (self._values(Image.new("RGB", _PROBES[0], (level,) * 3)) for level in (0, 255))
        if len({self._values(Image.new("RGB", size)).shape for size in _PROBES}) > 1:
            raise ValueError("it gives images of different shapes different sizes: it has no crop_size, or no size")
        if black.ndim != 3 or len(black) != 3:
            raise ValueError(f"it turns images into arrays of shape {list(black.shape)}, not [3, height, width]")
        self.height, self.width = black.shape[1:]
        center = (slice(None), self.height // 2, self.width // 2)
        self.shift = black[center].astype(np.float64)
        self.scale = (white[center].astype(np.float64) - self.shift) / 255
        if not (self.scale > 0).all():
            raise ValueError("it turns white and black images into the same array")
        noise = np.random.default_rng(0).integers(0, 256, (*_PROBES[0][::-1], 3), np.uint8)
        levels = self._levels(Image.fromarray(noise))
        if np.abs(levels - levels.round()).max() > 0.1 or not (-0.1 < levels.min() <= levels.max() < 255.1):
            raise ValueError("it does more than resize, crop, rescale and normalize")

    def pixels(self, image: Image.Image) -> np.ndarray:
        """An RGB image after resizing and cropping, uint8 [height, width, 3]."""
        return self._levels(image).round().clip(0, 255).astype(np.uint8).transpose(1, 2, 0)

    def _levels(self, image: Image.Image) -> np.ndarray:
        """The inputs of the linear function: 0 to 255, [3, height, width]."""
        return (self._values(image) - self.shift[:, None, None]) / self.scale[:, None, None]

    def _values(self, image: Image.Image) -> np.ndarray:
        return np.asarray(self._processor(image)["pixel_values"][0])


def pretrained_processor(name: str, field: str = PROCESSOR_FILE) -> Processor:
    """The image processor of a network on the Hugging Face hub or in a folder, which the user has named in `field`.

    Raises DataError if there is none, or it cannot be used.
    """
    cached_only = is_cached_only(name, field)
    from transformers.models.auto.image_processing_auto import AutoImageProcessor

    try:
        processor = AutoImageProcessor.from_pretrained(
            name, backend="pil", trust_remote_code=False, local_files_only=cached_only
        )
    except (AttributeError, ImportError, OSError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{field}: {name} has no usable image processor ({PROCESSOR_FILE}): {reason}") from None
    try:
        return Processor(processor)
    except (ImportError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{field}: the image processor of {name} ({PROCESSOR_FILE}) cannot be used: {error}") from None


@cache
def _loaded(config: str) -> Processor:
    """Raises DataError if `config` is not an image processor's, or differs from that of the training."""
    with scratch_folder() as folder:
        (folder / PROCESSOR_FILE).write_text(config)
        return pretrained_processor(str(folder))
