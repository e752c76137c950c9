"""A classifier of tables as an ONNX graph, in full precision and in 8 bits: numbers, missing ones and categories."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow.csv import write_csv

from predictor_runs import make_run
from preprocessors import input_of
from trainjob.compress.export import export, quantize
from trainjob.kinds.inputs.table import TableInput
from trainjob.models import load_model
from trainjob.models.onnx import FILE
from trainjob.predictor import Predictor


def rows_of(count: int) -> pa.Table:
    chance = np.random.default_rng(0)
    ages, shapes = chance.integers(18, 90, count), chance.integers(0, 3, count)
    columns = {
        "age": pa.array(ages, mask=ages % 7 == 0),
        "income": chance.lognormal(10, 1, count),
        "shape": np.array(["round", "long", "flat"])[shapes],
        "label": np.where(ages > 50, "old", "young"),
    }
    return pa.table(columns)


def test_the_graph_and_its_8_bits_answer_as_the_network_does(tmp_path: Path) -> None:
    rows = rows_of(200)
    write_csv(rows, tmp_path / "rows.csv")
    document = {
        "model": {"tableClassifier": {"tabm": {"members": 3, "hiddenSize": 8, "embeddingSize": 4}}},
        "dataset": {"train": {"uri": str(tmp_path / "rows.csv")}, "label": "label"},
    }
    run = make_run(tmp_path / "run", document)
    classifier, preprocessor = load_model(run / "model")
    predictor = Predictor.load(run)
    levels = input_of(preprocessor, TableInput).levels
    numbers, categories = torch.randn(12, len(levels)), torch.arange(12)[:, None] % 3
    examples = [{"numbers": numbers[part], "categories": categories[part]} for part in (slice(0, 8), slice(8, 12))]
    graph, small = tmp_path / "onnx", tmp_path / "int8"
    for folder in (graph, small):
        folder.mkdir()
    export(classifier, preprocessor, examples, graph)
    quantize(graph / FILE, preprocessor, classifier.problem_type, small)
    expected = predictor.predict_proba(rows)
    assert np.ptp(expected[:, 0]) > 0.05, "the answers differ from row to row"
    assert Predictor.load(graph).predict_proba(rows) == pytest.approx(expected, abs=1e-5)
    assert Predictor.load(small).predict_proba(rows) == pytest.approx(expected, abs=0.05)
    assert Predictor.load(small).predict_proba(rows) != pytest.approx(expected, abs=1e-6)
