import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_specs import (
    image_spec,
    random_images,
    some_rows,
    text_spec,
    write_csv,
    write_images,
    write_jsonl,
    write_mnist,
    write_parquet,
)

from preprocessors import input_of, labels_of
from trainjob.api import TrainJobSpec
from trainjob.data import Examples, Fitted, fit, prepare_examples
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.text import TextInput
from trainjob.kinds.targets.one_class import OneClass
from trainjob.storage import Folder


def prepared(spec: TrainJobSpec) -> tuple[Fitted, dict[str, Examples]]:
    fitted = fit(spec)
    return fitted, prepare_examples(spec, fitted)


def text_preprocessor(fitted: Fitted) -> TextInput:
    return input_of(fitted.preprocessor, TextInput)


def image_preprocessor(fitted: Fitted) -> ImageInput:
    return input_of(fitted.preprocessor, ImageInput)


def class_counts(fitted: Fitted) -> list[int]:
    target = fitted.preprocessor.target
    assert isinstance(target, OneClass)
    return target.class_counts


def decoded(fitted: Fitted, examples: Examples) -> list[tuple[str, str]]:
    """Texts and labels."""
    preprocessor, classes = text_preprocessor(fitted), fitted.preprocessor.target.classes
    tokens = [part.tolist() for part in np.split(examples.values, examples.offsets[1:-1])]
    texts = preprocessor.tokenizer.decode_batch(tokens)
    return [(text, classes[label]) for text, label in zip(texts, labels_of(examples), strict=True)]


def pairs(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["text"], row["label"]) for row in rows]


def test_a_text_set_from_end_to_end(tmp_path: Path) -> None:
    rows, test = some_rows(90), some_rows(9)
    path = write_csv(tmp_path / "rows.csv", rows)
    fitted, examples = prepared(text_spec(path, test={"uri": str(write_jsonl(tmp_path / "test.jsonl", test))}))

    assert fitted.preprocessor.target.classes == ["art", "law", "war"]
    assert fitted.rows == {"train": 72, "validation": 18, "test": 9} == {name: len(examples[name]) for name in examples}
    assert {each.values.dtype for each in examples.values()} == {np.dtype(np.uint16)}
    assert class_counts(fitted) == [24, 24, 24]
    assert [np.bincount(labels_of(examples[name])).tolist() for name in ("train", "validation")] == [[24] * 3, [6] * 3]
    assert decoded(fitted, examples["test"]) == pairs(test)
    texts = decoded(fitted, examples["train"]) + decoded(fitted, examples["validation"])
    assert sorted(texts) == sorted(pairs(rows))
    train = decoded(fitted, examples["train"])
    assert train == [pair for pair in pairs(rows) if pair in train]  # in the source's order


def test_validation_rows_of_their_own(tmp_path: Path) -> None:
    train, validation = some_rows(30), some_rows(6)
    validation_uri = str(write_csv(tmp_path / "validation.csv", validation))
    spec = text_spec(write_csv(tmp_path / "train.csv", train), validation={"uri": validation_uri})
    fitted, examples = prepared(spec)
    assert fitted.split is None
    assert fitted.rows == {"train": 30, "validation": 6}
    assert decoded(fitted, examples["train"]) == pairs(train)
    assert decoded(fitted, examples["validation"]) == pairs(validation)


def test_neither_order_nor_files_nor_format_change_what_is_fitted(tmp_path: Path) -> None:
    rows = some_rows(120) + some_rows(30)
    backwards = rows[::-1]
    write_csv(tmp_path / "one.csv", rows)
    write_parquet(tmp_path / "two.parquet", backwards, row_group_size=7)
    for start in range(0, 150, 40):
        write_jsonl(tmp_path / "three" / f"{start}.jsonl", backwards[start : start + 40])

    results = [prepared(text_spec(tmp_path / name)) for name in ("one.csv", "two.parquet", "three")]

    first, examples = results[0]
    for fitted, others in results[1:]:
        assert fitted.split == first.split
        assert text_preprocessor(fitted).tokenizer.to_str() == text_preprocessor(first).tokenizer.to_str()
        for name in examples:
            assert Counter(decoded(fitted, others[name])) == Counter(decoded(first, examples[name]))


def test_the_seed_changes_the_split(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", some_rows(90))
    splits = [fit(text_spec(path, seed=seed)).split for seed in (1, 1, 2)]
    assert splits[0] == splits[1]
    assert splits[0] != splits[2]


def test_duplicates_never_straddle_the_split(tmp_path: Path) -> None:
    fitted, examples = prepared(text_spec(write_csv(tmp_path / "rows.csv", some_rows(60) * 3)))
    train, validation = (set(decoded(fitted, examples[name])) for name in ("train", "validation"))
    assert not train & validation
    assert len(train | validation) == 60
    assert fitted.rows == {"train": 144, "validation": 36}


def test_the_tokenizer_never_sees_validation_rows(tmp_path: Path) -> None:
    rows = [{"text": f"word{index:03d} " * 3, "label": "ab"[index % 2]} for index in range(40)]
    fitted, examples = prepared(
        text_spec(write_csv(tmp_path / "rows.csv", rows), {"encoder": {"vocabularySize": 2000}})
    )
    vocabulary = text_preprocessor(fitted).tokenizer.get_vocab()
    known = {row["text"].split()[0] for row in rows if row["text"].split()[0] in vocabulary}
    tokens = {name: examples[name].lengths for name in examples}
    assert len(known) == fitted.rows["train"] == 32
    assert set(tokens["train"]) == {5}
    assert min(tokens["validation"]) > 5


def test_text_columns_are_joined_and_null_is_empty(tmp_path: Path) -> None:
    rows = [{"title": "title " * n, "body": None if n % 2 else "body", "label": "ab"[n // 2 % 2]} for n in range(1, 41)]
    fitted, examples = prepared(text_spec(write_parquet(tmp_path / "rows.parquet", rows), text=["title", "body"]))
    texts = {text for name in examples for text, _ in decoded(fitted, examples[name])}
    assert texts == {" ".join(["title"] * n + ["body"] * (1 - n % 2)) for n in range(1, 41)}


def test_cleaning_is_applied(tmp_path: Path) -> None:
    rows = [{"text": "<b>LOUD</b>\x00   " * n, "label": "ab"[n % 2]} for n in range(1, 21)]
    spec = text_spec(write_jsonl(tmp_path / "rows.jsonl", rows), cleaning={"lowercase": True, "removeHTML": True})
    fitted, examples = prepared(spec)
    texts = {text for name in examples for text, _ in decoded(fitted, examples[name])}
    assert texts == {" ".join(["loud"] * n) for n in range(1, 21)}


def test_white_space_around_labels_does_not_count(tmp_path: Path) -> None:
    rows = [{"text": str(n), "label": ["a", " b", "a ", "b"][n % 4]} for n in range(20)]
    assert fit(text_spec(write_csv(tmp_path / "rows.csv", rows))).preprocessor.target.classes == ["a", "b"]


def test_labels_that_are_numbers(tmp_path: Path) -> None:
    rows = [{"text": str(n), "label": n % 3} for n in range(30)]
    fitted, examples = prepared(text_spec(write_parquet(tmp_path / "rows.parquet", rows)))
    assert fitted.preprocessor.target.classes == ["0", "1", "2"]
    assert all(int(text) % 3 == int(label) for text, label in decoded(fitted, examples["train"]))


def test_images_from_end_to_end(tmp_path: Path) -> None:
    arrays = {"cat": random_images(20, (6, 5, 3)), "dog": random_images(30, (6, 5, 3), seed=1)}
    fitted, examples = prepared(image_spec(write_images(tmp_path, arrays)))
    preprocessor = image_preprocessor(fitted)
    assert (preprocessor.height, preprocessor.width, preprocessor.channels) == (6, 5, 3)
    assert class_counts(fitted) == [16, 24]
    assert fitted.rows == {"train": 40, "validation": 10}
    train = examples["train"].values.reshape(-1, 6, 5, 3)
    known = {image.tobytes(): label for label, images in arrays.items() for image in images}
    labels = [fitted.preprocessor.target.classes[index] for index in labels_of(examples["train"])]
    assert [known[image.tobytes()] for image in train] == labels
    pixels = preprocessor.batch(examples["train"])["pixel_values"]
    assert pixels.shape == (40, 3, 6, 5)
    divisor, subtrahend = preprocessor.normalization
    pixels = pixels / divisor - subtrahend
    np.testing.assert_allclose(pixels.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(pixels.std((0, 2, 3)), 1, atol=1e-4)


def test_mnist_and_a_folder_of_the_same_images_agree(tmp_path: Path) -> None:
    images, labels = np.stack(random_images(40)), np.arange(40) % 2
    path = write_mnist(tmp_path / "idx", images, labels)
    folder = write_images(tmp_path / "png", {str(c): list(images[labels == c]) for c in (0, 1)})
    for uri in (path, folder):
        fitted, examples = prepared(image_spec(uri))
        train = examples["train"]
        assert image_preprocessor(fitted).channels == 1
        found = {
            row.tobytes(): label for row, label in zip(train.values.reshape(-1, 30), labels_of(train), strict=True)
        }
        expected = {image.tobytes(): label for image, label in zip(images, labels, strict=True)}
        assert found.items() <= expected.items()
        np.testing.assert_allclose(image_preprocessor(fitted).mean, train.values.mean() / 255, atol=1e-6)
        np.testing.assert_allclose(image_preprocessor(fitted).std, train.values.std() / 255, atol=1e-6)


def test_one_coloured_training_image_makes_all_rgb(tmp_path: Path) -> None:
    grey, coloured = random_images(10), random_images(10, (6, 5, 3))
    fitted, examples = prepared(image_spec(write_images(tmp_path / "mixed", {"grey": grey, "rgb": coloured})))
    assert image_preprocessor(fitted).channels == 3
    assert examples["train"].lengths.tolist() == [90] * 16

    validation = write_images(tmp_path / "validation", {"a": coloured[:1], "b": coloured[1:]})
    train = write_images(tmp_path / "grey", {"a": grey[:5], "b": grey[5:]})
    fitted, examples = prepared(image_spec(train, validation={"uri": str(validation)}))
    assert image_preprocessor(fitted).channels == 1
    assert examples["validation"].lengths.tolist() == [30] * 10


def test_images_of_any_size_are_resized_when_asked(tmp_path: Path) -> None:
    sizes = [random_images(1, (n, 2 * n))[0] for n in range(2, 12)]
    folder = write_images(tmp_path, {"a": sizes[:5], "b": sizes[5:]})
    fitted, examples = prepared(image_spec(folder, size=(4, 3)))
    assert (image_preprocessor(fitted).height, image_preprocessor(fitted).width) == (4, 3)
    assert examples["train"].lengths.tolist() == [12] * 8


@pytest.mark.parametrize("kind", ["text", "image", "own validation"])
def test_what_is_fitted_comes_back_from_storage(kind: str, tmp_path: Path) -> None:
    if kind == "image":
        spec = image_spec(write_images(tmp_path / "x", {"a": random_images(5), "b": random_images(5, seed=1)}))
    else:
        path = write_csv(tmp_path / "rows.csv", some_rows())
        spec = text_spec(path, validation={"fraction": 0.2} if kind == "text" else {"uri": str(path)})
    fitted = fit(spec)
    fitted.save(Folder(str(tmp_path / "fitted")))
    loaded = Fitted.load(Folder(str(tmp_path / "fitted")))

    assert (loaded.split, loaded.rows, loaded.label) == (fitted.split, fitted.rows, fitted.label)
    before, after = prepare_examples(spec, fitted), prepare_examples(spec, loaded)
    for name in before:
        assert np.array_equal(before[name].values, after[name].values)
        expected = fitted.preprocessor.input.batch(before[name])
        for key, array in loaded.preprocessor.input.batch(after[name]).items():
            assert np.array_equal(array, expected[key])


def test_fitting_needs_neither_ray_nor_torch(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", some_rows())
    images = write_mnist(tmp_path, np.stack(random_images(20)), np.arange(20) % 2)
    program = f"""
import sys
from trainjob.data import fit, prepare_examples
from data_specs import image_spec, text_spec
for spec in (text_spec({str(path)!r}), image_spec({str(images)!r})):
    prepare_examples(spec, fit(spec))
print(*({{"ray", "torch", "transformers", "pandas", "sklearn"}} & sys.modules.keys()))
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == []
