"""Pairs of texts: read, prepared, learned, answered, exported and compared."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv
from scipy import sparse
from transformers import pipeline
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertModel
from transformers.models.bert.tokenization_bert import BertTokenizer
from transformers.models.gpt2.configuration_gpt2 import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2Model

from predictor_runs import finish_scored, make_run
from preprocessors import input_of
from report_runs import Page
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.baselines.features import tfidf
from trainjob.baselines.rows import sample
from trainjob.cli.predicted_rows import classify
from trainjob.data import Examples, Fitted, fit, prepare_examples
from trainjob.data.batches.loaders import collate
from trainjob.errors import Notice, UserError
from trainjob.evaluation import Confusion, classification_scores
from trainjob.evaluation.predictions import prediction_table, ranked_table, with_names
from trainjob.kinds.inputs.text import TextInput
from trainjob.models import build
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.runs.predictions import read_predictions, write_predictions
from trainjob.storage import Folder

WORDS = ["red", "blue", "green", "gold", "grey", "pink", "teal", "plum"]
ENCODER = {"encoder": {"layers": 1, "hiddenSize": 32, "heads": 2, "vocabularySize": 200}}
PAIRS = [("red blue", "blue red"), ("gold", "plum pink " * 30), ("", "teal"), ("grey " * 40, "")]


def write_pairs(file: Path, rows: int, seed: int) -> Path:
    """Two texts, and whether the second one has the same words in another order."""
    chance = np.random.default_rng(seed)
    firsts = [chance.choice(WORDS, 3) for _ in range(rows)]
    alike = chance.random(rows) < 0.5
    seconds = [chance.permutation(firsts[row]) if alike[row] else chance.choice(WORDS, 3) for row in range(rows)]
    columns = {
        "question": [" ".join(words) for words in firsts],
        "details": ["" for _ in firsts],
        "other": [" ".join(words) for words in seconds],
        "label": ["same" if same else "different" for same in alike],
    }
    csv.write_csv(pa.table(columns), file)
    return file


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    write_pairs(folder / "train.csv", 300, 0)
    write_pairs(folder / "test.csv", 40, 1)
    return folder


def spec_of(folder: Path, model: dict[str, Any] = ENCODER, text: Any = ("question", "details")) -> dict[str, Any]:
    return {
        "model": {"textClassifier": {"maxLength": 16, "dropout": 0.0, **model}},
        "dataset": {
            "train": {"uri": str(folder / "train.csv")},
            "test": {"uri": str(folder / "test.csv")},
            "text": [*text],
            "textPair": ["other"],
            "label": "label",
        },
    }


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT, which is told the text of each token."""
    folder = tmp_path_factory.mktemp("bert")
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=13, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, initializer_range=0.5,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    BertTokenizer(str(vocabulary)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["from scratch", "pretrained"])
def run(request: pytest.FixtureRequest, data: Path, bert: Path) -> Path:
    model = ENCODER if request.param == "from scratch" else {"pretrained": str(bert)}
    return make_run(data / request.param, spec_of(data, model))


def as_rows(pairs: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"question": first, "details": "", "other": second} for first, second in pairs]


def test_transformers_answers_alike(run: Path) -> None:
    predictor = Predictor.load(run)
    pairs = PAIRS[:3]  # transformers takes an empty text_pair for none
    found = predictor.predict_proba(pairs)
    ask: Any = pipeline("text-classification", model=str(run / "model"), top_k=None)
    inputs = [{"text": first, "text_pair": second} for first, second in pairs]
    for answers, row in zip(ask(inputs, truncation=True, max_length=16), found, strict=True):
        by_class = {each["label"]: each["score"] for each in answers}
        assert [by_class[name] for name in predictor.classes] == pytest.approx(row.tolist(), abs=1e-5)
    assert np.abs(found - predictor.predict_proba([(second, first) for first, second in pairs])).max() > 1e-5, (
        "their order matters"
    )
    texts = input_of(predictor.preprocessor, TextInput)
    texts.check_export(run / "model", ["red blue\nblue red", "gold\n", "gold\n" + "plum pink " * 30])


def test_the_tokenizer_separates_the_texts_and_cuts_the_longer_one(data: Path, bert: Path) -> None:
    fitted = fit(TrainJobSpec.model_validate(spec_of(data, {"pretrained": str(bert)})))
    texts = input_of(fitted.preprocessor, TextInput)
    examples = Examples.from_table(pa.table({"values": texts.transform(texts.table(PAIRS, str))}))
    inputs = texts.batch(examples)
    tokens = [[texts.tokenizer.id_to_token(number) or "" for number in row] for row in inputs["input_ids"]]
    assert tokens[0][:7] == ["[CLS]", "red", "blue", "[SEP]", "blue", "red", "[SEP]"]
    assert inputs["token_type_ids"][0][:8].tolist() == [0, 0, 0, 0, 1, 1, 1, 0]
    assert (tokens[1].count("gold"), tokens[1].count("plum") + tokens[1].count("pink")) == (1, 12)
    assert inputs["input_ids"].shape == inputs["token_type_ids"].shape == (4, 16)
    assert fitted.profile is not None
    assert fitted.profile.cut_share == 0


def test_a_network_learns_what_only_both_texts_tell(data: Path) -> None:
    spec = TrainJobSpec.model_validate(spec_of(data))
    fitted = fit(spec)
    torch.manual_seed(0)
    module = build(spec.model, fitted.preprocessor)
    objective = fitted.preprocessor.target.objective(spec, module)
    batch = collate(fitted.preprocessor, prepare_examples(spec, fitted)["train"])
    optimizer = torch.optim.AdamW(module.parameters(), 5e-3)
    for _ in range(80):
        loss = objective.losses(module(**batch.inputs), batch).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.item() < 0.45, "guessing costs 0.69"


def test_rows_are_pairs_or_columns_in_python_and_in_requests(data: Path) -> None:
    predictor = Predictor.load(make_run(data / "answers", spec_of(data)))
    expected = predictor.predict_proba(PAIRS)
    assert np.array_equal(predictor.predict_proba(as_rows(PAIRS)), expected)
    joined = [{"question": "red", "details": "blue", "other": "blue red"}]
    assert predictor.predict_proba(joined) == pytest.approx(expected[:1], abs=1e-6)
    with pytest.raises(UserError, match=r"row 1: the model takes pairs of texts, .* --row '\{.question.: .…., "):
        predictor.predict(["red"])
    given: dict[str, list[Any]] = {"text": [], "image": ["a.png"], "row": []}
    with pytest.raises(UserError, match=r"takes no --image: give --row '\{.question.: .* or DATA"):
        classify(Folder(str(data / "answers")), None, None, None, given, Path("unused"))
    with pytest.raises(UserError, match="not tuple"):
        predictor.predict([("red", "blue", "gold")])
    with pytest.raises(UserError, match="row 1 has no details and no other"):
        predictor.predict([{"question": "red"}])

    question = predictor.preprocessor.input.question(9)
    by_column = [("red blue", None, "blue red")]
    assert question.model_validate({"texts": [["red blue", "blue red"]]}).as_rows() == by_column
    rows = [{"question": "red blue", "details": None, "other": "blue red"}]
    assert question.model_validate({"rows": rows}).as_rows() == by_column
    for wrong in ({"texts": ["red"]}, {"texts": [["red"]]}, {"texts": [["a", "b", "c"]]}, {"rows": [{"other": "a"}]}):
        with pytest.raises(ValueError, match="validation error"):
            question.model_validate(wrong)


def test_the_command_line_takes_a_row(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Folder(str(make_run(data / "shown", spec_of(data))))
    row = {"question": "red", "details": "", "other": "blue"}
    classify(run, None, None, None, {"text": [], "image": [], "row": [row]}, Path("unused.csv"))
    out = capsys.readouterr().out
    assert json.dumps(row).split() == out.split("\N{BOX DRAWINGS HEAVY DOWN AND RIGHT}")[0].split()
    assert "different" in out


def test_a_decoder_without_a_separator_is_remarked_on(data: Path, bert: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {name: number for number, name in enumerate(["<unk>", "<end>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    fast: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<end>")
    fast.save_pretrained(tmp_path)
    GPT2Model(GPT2Config(vocab_size=10, n_embd=16, n_layer=1, n_head=2, n_positions=32)).save_pretrained(tmp_path)
    with pytest.warns(Notice, match="puts no token between the two texts of a pair"):
        fit(TrainJobSpec.model_validate(spec_of(data, {"pretrained": str(tmp_path)})))


def test_both_texts_are_in_the_report_and_in_its_instructions(data: Path) -> None:
    run = Folder(str(make_run(data / "reported", spec_of(data))))
    job_rows = csv.read_csv(data / "test.csv")
    labels = np.array([name == "same" for name in job_rows["label"].to_pylist()], np.int64)
    ranked = np.stack([1 - labels, labels], axis=1)  # always wrong
    probabilities = np.tile(np.array([0.9, 0.1], np.float32), (len(labels), 1))
    table = with_names(ranked_table(np.arange(len(labels)), ranked, probabilities, labels), ["different", "same"])
    scores = classification_scores(
        Confusion.of(np.array([0, 1]), np.array([1, 0]), np.array([1, 1])), 1.0, ["different", "same"]
    )
    finish_scored(run, table, scores)
    page = Page(render(run))
    assert job_rows["question"][0].as_py() in page.text
    assert job_rows["other"][0].as_py() in page.text
    assert '--row \'{"question": "…", "details": "…", "other": "…"}\'' in page.text
    assert '[("a text", "another")]' in page.text


def test_the_baseline_sees_both_texts_and_what_they_share(data: Path) -> None:
    spec = TrainJobSpec.model_validate(spec_of(data))
    fitted = fit(spec)
    train, held = sample(spec, fitted, "train"), sample(spec, fitted, "test")
    words = tfidf(train.values)
    features, held_features = words.of_training, words.transform(held.values)
    both = tfidf([line for text in train.values for line in text.split("\n")])
    first, second = (both.transform([text.split("\n")[side] for text in held.values]) for side in (0, 1))
    expected = sparse.hstack([first, second, first.multiply(second), abs(first - second)])
    assert abs(held_features - expected).max() < 1e-12
    guesses = fitted.preprocessor.target.linear(features, train.labels, held_features)
    assert np.mean(guesses.predicted == held.labels) > 0.85


def test_the_baseline_of_pairs_is_kept_as_a_variant(data: Path, tmp_path: Path) -> None:
    run = Folder(str(make_run(tmp_path / "run", spec_of(data))))
    fitted = Fitted.load(run / "fitted")
    held = sample(read_contents(run).job.spec, fitted, "test")
    classes = fitted.preprocessor.target.classes
    sure = np.ones(len(held.labels), np.float32)
    write_predictions(run, "model", prediction_table(held.rows, held.labels, classes, sure, held.labels))
    baselines: list[Any] = compare_with_baselines(read_contents(run).job, run, ["tfidf"]).baselines
    assert [each.error for each in baselines] == [""]
    answers = Predictor.load(run.uri, variant="tfidf").answers(csv.read_csv(data / "test.csv"))
    stored = read_predictions(run, "tfidf")
    assert answers["prediction"].to_pylist() == stored["prediction"].to_pylist()
    np.testing.assert_allclose(answers["probability"].to_numpy(), stored["probability"].to_numpy(), atol=1e-6)
