"""TrainJob specs and small sources for the data tests."""

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from preprocessors import have_equal_labels, language_model
from trainjob.api import Source, TrainJobSpec
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.read.counted_reading import read_all
from trainjob.data.read.source import parts
from trainjob.kinds.causal_lm.tokens import TokensInput, train_byte_bpe

Rows = list[dict[str, Any]]
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def text_spec(
    uri: str | Path, classifier: dict[str, Any] | None = None, seed: int = 42, **dataset: Any
) -> TrainJobSpec:
    """A from-scratch text classifier on the columns `text` and `label` of `uri`."""
    return TrainJobSpec.model_validate(
        {
            "model": {"textClassifier": {"encoder": {"vocabularySize": 500}} | (classifier or {})},
            "dataset": {"train": {"uri": str(uri)}, "text": ["text"], "label": "label"} | dataset,
            "training": {"seed": seed},
        }
    )


def image_spec(uri: str | Path, size: tuple[int, int] | None = None, **dataset: Any) -> TrainJobSpec:
    """A CNN on the images at `uri`; `size` is height and width."""
    resize = {"size": {"height": size[0], "width": size[1]}} if size else {}
    return TrainJobSpec.model_validate(
        {
            "model": {"imageClassifier": {"cnn": {}} | resize},
            "dataset": {"train": {"uri": str(uri)}} | dataset,
        }
    )


def causal_spec(uri: str | Path, model: dict[str, Any] | None = None, **columns: Any) -> TrainJobSpec:
    """A language model, from scratch by default, on the `columns` of `uri`, such as `messages="chat"`."""
    model = {"maxLength": 64} | (model or {"decoder": {"vocabularySize": 300}})
    return TrainJobSpec.model_validate(
        {"model": {"causalLM": model}, "dataset": {"train": {"uri": str(uri)}} | columns}
    )


def save_chat_tokenizer(folder: Path) -> Path:
    """Saves the tokenizer of a pretrained model with a chat template."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, config = train_byte_bpe(["what of row 1 2 3"] * 3, 300, 64)
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    config |= {"eos_token": "<|im_end|>", "chat_template": CHATML}
    language_model(TokensInput([], 64, 8.0, tokenizer, config, "messages")).save(folder)
    return folder


def some_chats(count: int) -> Rows:
    """Distinct conversations in the column `chat`, of two and of four messages in turn."""

    def said(index: int) -> list[dict[str, Any]]:
        return [{"role": "user", "content": f"row {index}?"}, {"role": "assistant", "content": f"ü{index}"}]

    return [{"chat": said(index) * (1 + index % 2)} for index in range(count)]


def some_rows(count: int = 60, classes: Sequence[str] = ("art", "law", "war")) -> Rows:
    """Distinct texts, class by class in turn."""
    return [
        {"text": f"row {index} is about {classes[index % len(classes)]}", "label": classes[index % len(classes)]}
        for index in range(count)
    ]


def write_csv(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_jsonl(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, rows: Rows, row_group_size: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=row_group_size)
    return path


def write_images(folder: Path, arrays: dict[str, list[np.ndarray]], ending: str = "png") -> Path:
    """`arrays` are the images of each class: uint8 [H, W] or [H, W, 3]."""
    for label, images in arrays.items():
        (folder / label).mkdir(parents=True)
        for index, pixels in enumerate(images):
            Image.fromarray(pixels).save(folder / label / f"{index}.{ending}")
    return folder


def random_images(count: int, shape: tuple[int, ...] = (6, 5), seed: int = 0) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).integers(0, 256, (count, *shape), np.uint8))


def idx_bytes(array: np.ndarray) -> bytes:
    """The array in the format of MNIST's files."""
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def write_mnist(folder: Path, images: np.ndarray, labels: np.ndarray, zipped: bool = False) -> Path:
    """Returns the path of the file of images."""
    folder.mkdir(parents=True, exist_ok=True)
    ending = ".gz" if zipped else ""
    for name, array in (("train-labels-idx1-ubyte", labels), ("train-images-idx3-ubyte", images)):
        data = idx_bytes(array.astype(np.uint8))
        (folder / (name + ending)).write_bytes(gzip.compress(data) if zipped else data)
    return folder / f"train-images-idx3-ubyte{ending}"


def assert_same_examples(spec: TrainJobSpec, other: TrainJobSpec) -> None:
    mine, others = (prepare_examples(each, fit(each)) for each in (spec, other))
    assert mine.keys() == others.keys()
    for name in mine:
        assert len(mine[name]) > 0
        assert np.array_equal(mine[name].values, others[name].values)
        assert have_equal_labels(mine[name], others[name])


def assert_same_fitted(some: Fitted, others: Fitted) -> None:
    """But for the objects of the tokenizers, of which the vocabulary is compared."""
    for name in ("label", "split", "rows", "contents", "sources"):
        assert getattr(some, name) == getattr(others, name)
    assert some.preprocessor.target == others.preprocessor.target
    for name, value in vars(others.preprocessor.input).items():
        found = getattr(some.preprocessor.input, name)
        assert found.to_str() == value.to_str() if name == "tokenizer" else found == value


def read(uri: Path | str, columns: list[str] | None, file_format: Any = None) -> list[dict[str, Any]]:
    """The rows of a source."""
    found = parts(Source(uri=str(uri), format=file_format), None)
    return [row for rows in read_all(found, columns) for row in rows.table.to_pylist()]


def places(uri: Path | str, columns: list[str]) -> list[str]:
    """The location that each row of a source reports."""
    return [
        rows.where(index)
        for rows in read_all(parts(Source(uri=str(uri)), None), columns)
        for index in range(len(rows.table))
    ]
