"""Columns of texts beside numbers and categories: tokens, the network, its training, baselines and predictions."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5Model,
    ViTConfig,
    ViTModel,
)

from predictor_runs import make_run
from preprocessors import input_of
from trainjob.api import TrainJobSpec
from trainjob.api.defaults import with_defaults
from trainjob.api.load import trainjob_of
from trainjob.baselines.features import FEATURES
from trainjob.baselines.rows import sample
from trainjob.compress.export import export
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.batches.examples import Examples
from trainjob.data.batches.loaders import collate
from trainjob.data.read.rows import Rows, row_number
from trainjob.errors import DataError, UserError
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.pooled_encoder import pretrained_encoder
from trainjob.models import build, load_model, save_model
from trainjob.models.linear import load_linear
from trainjob.predictor import Predictor
from trainjob.worker.optim import build_optimizer

GOOD, BAD = ["lovely", "great", "superb"], ["awful", "broken", "poor"]
TABM = {"members": 3, "hiddenSize": 16, "embeddingSize": 4}
ENCODER = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 200}
TEXT = {"encoder": ENCODER, "maxLength": 8}


def write_reviews(file: Path, rows: int = 160, seed: int = 0) -> Path:
    """Reviews that are good where the text praises an expensive product."""
    chance = random.Random(seed)
    table: dict[str, list[Any]] = {"price": [], "title": [], "shop": [], "review": [], "label": []}
    for number in range(rows):
        praises, price = chance.random() < 0.5, chance.uniform(1, 100)
        text = f"a {chance.choice(GOOD if praises else BAD)} thing, number {number} of many"
        table["price"].append(round(price, 2))
        table["title"].append("" if number % 9 == 0 else f"{chance.choice('abc')} thing {number % 50}")
        table["shop"].append(chance.choice(["north", "south"]))
        table["review"].append(text)
        table["label"].append("good" if praises and price > 40 else "bad")
    csv.write_csv(pa.table(table), file)
    return file


def spec_of(file: Path, model: dict[str, Any] | None = None, **dataset: Any) -> dict[str, Any]:
    columns = {"title": "text", "review": "text"}
    return {
        "model": {"tableClassifier": {"tabm": TABM, "text": TEXT, "dropout": 0.0, **(model or {})}},
        "dataset": {"train": {"uri": str(file)}, "label": "label", "columns": columns, "loader": "dataLoader"}
        | dataset,
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reviews(tmp_path_factory.mktemp("reviews") / "train.csv")


@pytest.fixture(scope="module")
def spec(file: Path) -> TrainJobSpec:
    return TrainJobSpec.model_validate(spec_of(file))


@pytest.fixture(scope="module")
def fitted(spec: TrainJobSpec) -> Fitted:
    return fit(spec)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT, whose last layer, the pooler, is not used."""
    folder = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "thing", "number", *GOOD, *BAD]
    tokenizer = Tokenizer(WordPiece({word: index for index, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    return folder


def rows_of(file: Path) -> pa.Table:
    return csv.read_csv(file).drop_columns("label")


def test_a_prepared_row_has_the_tokens_of_each_cell(file: Path, fitted: Fitted) -> None:
    table, rows = input_of(fitted.preprocessor, TableInput), rows_of(file).slice(0, 20)
    assert {column.name: column.type for column in table.read} == {
        "price": "number",
        "title": "text",
        "shop": "category",
        "review": "text",
    }
    assert fitted.profile is not None
    assert "2 columns of texts: title, review" in fitted.profile.notes
    assert table.texts is not None
    inputs = table.batch(Examples.from_table(pa.table({"values": table.transform(rows)})))
    for row, each in enumerate(rows.to_pylist()):
        for column, name in enumerate(("title", "review")):
            ids = inputs["text_ids"][row, column][inputs["text_mask"][row, column] == 1]
            assert ids.tolist() == table.texts.tokenizer.encode(each[name]).ids
    assert inputs["numbers"].shape == (20, 1)
    assert inputs["categories"].shape == (20, 1)
    assert inputs["text_mask"].sum(axis=2).max() == 8, "some texts are cut"


def test_rows_may_be_taken_and_columns_shuffled(file: Path, fitted: Fitted) -> None:
    table, rows = input_of(fitted.preprocessor, TableInput), rows_of(file).slice(0, 30)

    def prepared(rows: pa.Table) -> Examples:
        return Examples.from_table(pa.table({"values": table.transform(rows)}))

    order = np.random.default_rng(0).permutation(30)
    assert_same(table.batch(prepared(rows).take(order)), table.batch(prepared(rows.take(pa.array(order)))))
    for index, name in enumerate(rows.column_names):
        moved = rows.set_column(index, name, rows[name].take(pa.array(order)))
        assert_same(table.batch(table.shuffled(prepared(rows), name, order)), table.batch(prepared(moved)))


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, each in found.items():
        np.testing.assert_array_equal(each, expected[name])


def trained(spec: TrainJobSpec, fitted: Fitted, steps: int = 40) -> Any:
    """A network that was trained in a plain loop on all rows, with the optimizer of a run."""
    torch.manual_seed(0)
    module = build(spec.model, fitted.preprocessor)
    objective = fitted.preprocessor.target.objective(spec, module)
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
    optimizer = build_optimizer(spec.training.optimizer, module.parameters(), module.rate_factor)
    for group in optimizer.param_groups:
        group["lr"] *= 10
    for _ in range(steps):
        optimizer.zero_grad()
        objective.losses(module(**batch.inputs), batch).mean().backward()
        optimizer.step()
    return module.eval()


def test_the_network_joins_texts_and_numbers(file: Path, spec: TrainJobSpec, fitted: Fitted, tmp_path: Path) -> None:
    """Neither the text nor the price tells the label alone."""
    module = trained(spec, fitted)
    run = make_run(tmp_path / "run", spec_of(file))
    save_model(module, fitted.preprocessor, run / "model")
    new = write_reviews(tmp_path / "new.csv", 200, seed=1)
    predictor, rows = Predictor.load(run), csv.read_csv(new)
    predicted, labels = predictor.predict(rows), rows["label"].to_pylist()
    assert np.mean(np.array(predicted) == np.array(labels)) > 0.9
    assert predictor.predict(rows.to_pylist()[:5]) == predicted[:5]
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
    loaded, _ = load_model(run / "model")
    torch.testing.assert_close(loaded(**batch.inputs), module(**batch.inputs))


def test_an_exported_graph_reads_texts_of_any_length(spec: TrainJobSpec, fitted: Fitted, tmp_path: Path) -> None:
    module: Any = build(spec.model, fitted.preprocessor).eval()
    examples, folder = prepare_examples(spec, fitted)["train"], tmp_path / "onnx"
    folder.mkdir()
    some = [examples.take(np.arange(*bounds)) for bounds in ((0, 2), (2, 30), (30, 31))]
    inputs = [
        {name: torch.from_numpy(each) for name, each in fitted.preprocessor.input.batch(rows).items()} for rows in some
    ]
    export(module, fitted.preprocessor, inputs, folder)  # raises where logits differ
    assert load_model(folder)[0](**inputs[1]).shape == (28, 2)


def test_a_pretrained_encoder_learns_slower_than_the_rest(file: Path, bert: Path, tmp_path: Path) -> None:
    document = spec_of(file, {"text": {"pretrained": str(bert), "maxLength": 8}})
    header = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "reviews"}}
    spec = with_defaults(trainjob_of({**header, "spec": document}, folder=tmp_path)).spec
    assert spec.model.pretrained == str(bert)
    assert spec.training.scheduler.linear is not None, "as for other pretrained models"
    fitted = fit(spec)
    module: Any = build(spec.model, fitted.preprocessor)
    names = {id(parameter): name for name, parameter in module.network.named_parameters()}
    optimizer = build_optimizer(spec.training.optimizer, module.parameters(), module.rate_factor)
    rates = {names[id(each)]: group["lr"] for group in optimizer.param_groups for each in group["params"]}
    assert {rate for name, rate in rates.items() if name.startswith("encoder.")} == {1e-4}
    assert {rate for name, rate in rates.items() if not name.startswith("encoder.")} == {2e-3}
    assert not any("pooler" in name for name in rates), "its weights get no gradients"
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
    module(**batch.inputs).sum().backward()
    assert all(each.grad is not None for each in module.parameters() if each.requires_grad)
    save_model(module.eval(), fitted.preprocessor, tmp_path / "model")
    loaded, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(loaded(**batch.inputs), module(**batch.inputs))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (lambda: GPT2Model(GPT2Config(n_embd=16, n_layer=1, n_head=2)), "type gpt2, which has a decoder"),
        (lambda: T5Model(T5Config(d_model=16, num_layers=1, num_heads=2)), "type t5, which has a decoder"),
        (
            lambda: ViTModel(ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2)),
            "type vit, which does not read texts alone",
        ),
    ],
    ids=["decoder", "with a decoder", "images"],
)
def test_only_encoders_of_texts_are_read(tmp_path: Path, network: Callable[[], PreTrainedModel], message: str) -> None:
    network().save_pretrained(tmp_path)
    with pytest.raises(UserError, match=rf"^spec\.the\.field: .* is a model of {message}"):
        pretrained_encoder(str(tmp_path), "spec.the.field", as_stored=False)


@pytest.mark.parametrize(
    ("columns", "features", "message"),
    [
        (
            {"title": "text", "review": "text"},
            ["title", "review"],
            r"are texts \(title, review\), which textClassifier and",
        ),
        ({"shop": "text", "country": "text", "price": "number"}, ["shop", "country", "price"], ""),
    ],
)
def test_texts_alone_are_for_models_of_texts(
    file: Path, tmp_path: Path, columns: dict[str, str], features: list[str], message: str
) -> None:
    table = csv.read_csv(file)
    table = table.append_column("country", pa.array(["Italy"] * len(table)))
    csv.write_csv(table, tmp_path / "train.csv")
    spec = TrainJobSpec.model_validate(spec_of(tmp_path / "train.csv", columns=columns, features=features))
    if message:
        with pytest.raises(DataError, match=message):
            fit(spec)
    else:
        found = fit(spec)
        assert input_of(found.preprocessor, TableInput).text_columns == ["shop"]
        assert found.profile is not None
        same = "country (the same in all 128 training rows that were read)"
        assert f"columns left out: {same}" in found.profile.notes


def test_the_linear_baseline_reads_the_texts(file: Path, fitted: Fitted, spec: TrainJobSpec, tmp_path: Path) -> None:
    """The same as a pipeline of scikit-learn, and the same again when it is loaded."""
    train = sample(spec, fitted, "train")
    features = FEATURES["linear"](train.values)
    assert isinstance(train.values, pa.Table)
    texts = [
        " ".join(filter(None, row))
        for row in zip(*(train.values[name].to_pylist() for name in ("2", "3")), strict=True)
    ]
    weights = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\b\w+\b").fit_transform(texts)
    assert abs(features.of_training[:, -weights.shape[1] :] - weights).max() < 1e-12
    model = LogisticRegression().fit(features.of_training, train.labels)
    assert features.save is not None
    signs = np.concatenate([-model.coef_.T, model.coef_.T], axis=1) / 2
    intercepts = np.concatenate([-model.intercept_, model.intercept_]) / 2
    features.save(signs, intercepts, fitted.preprocessor, tmp_path)
    loaded, preprocessor = load_linear(tmp_path, fitted.preprocessor)
    rows = rows_of(file).slice(0, 50)
    values = preprocessor.input.transform(rows, row_number)
    outputs = preprocessor.input.batch(Examples.from_table(pa.table({"values": values})))
    where: Any = row_number
    plain = fitted.preprocessor.input.plain(Rows(rows, where))
    np.testing.assert_allclose(
        loaded(torch.from_numpy(outputs["outputs"])).softmax(1).numpy(),
        model.predict_proba(features.transform(plain)),
        atol=1e-9,
    )
