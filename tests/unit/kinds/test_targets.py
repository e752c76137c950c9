"""Targets read labels, compute losses and answer."""

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
import torch

from preprocessors import text_classifier
from trainjob.api import Cleaning, Model, TrainJobSpec
from trainjob.data import fit, prepare_examples
from trainjob.data.batches.examples import Examples
from trainjob.data.first_pass.split import hashes
from trainjob.data.read.rows import RowLocation, Rows
from trainjob.errors import RowError
from trainjob.kinds.inputs.text import TextInput, train_wordpiece
from trainjob.kinds.targets.next_token import NextToken
from trainjob.kinds.targets.one_class import OneClass
from trainjob.models import TrainableClassifier, build

CLASSES = ["cat", "dog"]


def rows_with(*labels: str | None) -> Rows:
    return Rows(
        pa.table({"label": pa.array(labels, pa.string())}), lambda index: RowLocation("rows.csv", "row", index + 1)
    )


def test_a_class_is_read_by_its_name_and_other_labels_are_told() -> None:
    bad: list[RowError] = []
    rows, labels = OneClass(CLASSES, [3, 4]).read(rows_with("dog", "cow", " cat ", None), "label", bad.append)
    assert labels.tolist() == [1, 0]
    assert [rows.where(index) for index in range(2)] == ["rows.csv, row 1", "rows.csv, row 3"]
    assert [error.location for error in bad] == ["rows.csv, row 2", "rows.csv, row 4"]


@pytest.mark.parametrize("loss", ["crossEntropy", "binaryCrossEntropy"])
def test_the_answer_is_the_most_probable_class_beside_the_probabilities_of_all(loss: str) -> None:
    target = OneClass(CLASSES, [3, 4])
    texts = TextInput(["text"], 16, 10.0, *train_wordpiece(["some text"] * 9, 100, 16), Cleaning())
    spec = Model.model_validate({"textClassifier": {"encoder": {"hiddenSize": 16}, "loss": {loss: {}}}})
    module = cast("TrainableClassifier[Any]", build(spec, text_classifier(texts, CLASSES, [3, 4])))
    outputs = torch.tensor([[2.0, 1.0], [-1.0, 3.0]])
    answer = target.answer(outputs, module).to_pydict()
    expected = (outputs.softmax(dim=1) if loss == "crossEntropy" else outputs.sigmoid()).numpy()
    assert list(answer) == ["prediction", "probability", "probability_cat", "probability_dog"]
    assert answer["prediction"] == ["cat", "dog"]
    np.testing.assert_allclose(answer["probability"], expected.max(axis=1))
    np.testing.assert_allclose([answer["probability_cat"], answer["probability_dog"]], expected.T)
    assert len(target.answer(torch.empty(0, 2), module)) == 0
    for reply, row in zip(target.replies(outputs, module), expected.tolist(), strict=True):
        best_first = sorted(zip(row, CLASSES, strict=True), reverse=True)
        assert reply.prediction == best_first[0][1]
        assert list(reply.probabilities.items()) == [(name, round(value, 6)) for value, name in best_first]
        assert reply.lines("") == [(name, f"{value:.4f}") for value, name in best_first]


def test_rows_prepared_without_labels_cannot_be_learned_as_a_class() -> None:
    examples = Examples.from_table(pa.table({"values": pa.array([[1, 2], [3]], pa.list_(pa.int32()))}))
    assert examples.labels is None
    assert len(examples.take(np.array([1]))) == 1
    with pytest.raises(AssertionError, match="prepared without labels"):
        OneClass(CLASSES, [3, 4]).labels(examples, {})


def test_rows_of_a_language_model_have_no_labels_and_the_digest_of_earlier_versions(tmp_path: Path) -> None:
    """Earlier versions wrote the digest of one class without a name."""
    texts = [f"Returns row {number}." for number in range(50)]
    (tmp_path / "rows.csv").write_text("\n".join(["text", *texts]))
    spec = TrainJobSpec.model_validate(
        {
            "model": {"causalLM": {"decoder": {"vocabularySize": 300}, "maxLength": 16}},
            "dataset": {"train": {"uri": str(tmp_path / "rows.csv")}, "text": ["text"]},
        }
    )
    fitted = fit(spec)
    assert (fitted.label, fitted.preprocessor.target) == (None, NextToken())
    assert fitted.rows == {"train": 40, "validation": 10}
    assert {name: rows.labels for name, rows in prepare_examples(spec, fitted).items()} == dict.fromkeys(fitted.rows)
    of_rows = hashes([text.encode() for text in texts], spec.training.seed)
    content = json.dumps([""]).encode() + np.zeros(50, np.int64).tobytes() + of_rows.tobytes()
    assert fitted.contents["train"] == hashlib.blake2b(content, digest_size=16).hexdigest()
