"""Spans of texts: read, fitted, learned in windows, scored, answered and compared."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from predictor_runs import finish_scored, make_run
from report_runs import Page
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.baselines.rows import sample
from trainjob.cli.app import app
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.batches.loaders import collate
from trainjob.data.read.rows import RowLocation, Rows, row_number
from trainjob.data.read.spans import read_spans
from trainjob.driver.propose import proposed
from trainjob.errors import DataError, RowError, UserError
from trainjob.evaluate import evaluate
from trainjob.evaluation.scores.spans import SpanScores, span_scores
from trainjob.evaluation.span_estimates import SpanJudge, counts_of, scores_of
from trainjob.kinds.token_classifier.reply import FoundSpan, Spans
from trainjob.kinds.token_classifier.tags import runs_of, tags_of
from trainjob.kinds.token_classifier.target import SpanTarget, known_strings
from trainjob.models import build
from trainjob.models.scoring import tally_batches
from trainjob.predictor import Predictor
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.schema.spans import parsed, written
from trainjob.storage import Folder

ENCODER = {"layers": 1, "hiddenSize": 32, "heads": 2, "vocabularySize": 200}
NAMES = {"Ada Lovelace": "person", "Alan Turing": "person", "Oslo": "city", "New York": "city"}
WORDS = ["went", "to", "saw", "the", "house", "near", "and"]


def row(chance: np.random.Generator, length: int) -> dict[str, Any]:
    text, spans = "", []
    for word in chance.choice([*NAMES, *WORDS], length):
        start = len(text) + bool(text)
        text = f"{text} {word}" if text else str(word)
        if word in NAMES:
            spans.append([start, len(text), NAMES[str(word)]])
    return {"text": text, "spans": spans}


def write_rows(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def spec_of(folder: Path, **dataset: Any) -> dict[str, Any]:
    return {
        "model": {"tokenClassifier": {"encoder": ENCODER, "maxLength": 12, "dropout": 0.0}},
        "dataset": {
            "train": {"uri": str(folder / "train.jsonl")},
            "test": {"uri": str(folder / "test.jsonl")},
            "text": ["text"],
            "label": "spans",
            **dataset,
        },
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("spans"), np.random.default_rng(0)
    write_rows(folder / "train.jsonl", [row(chance, int(chance.integers(2, 30))) for _ in range(120)])
    write_rows(folder / "test.jsonl", [row(chance, int(chance.integers(2, 30))) for _ in range(30)])
    return folder


@pytest.mark.parametrize(
    "cell",
    [
        [[4, 7, "A"], [0, 3, "B"]],
        [{"start": 0, "end": 3, "label": "B"}, {"start": 4, "end": 7, "label": "A"}],
        [{"start": 0, "end": 3, "text": "one", "labels": ["B"]}, {"start": 4, "end": 7, "labels": ["A"]}],
        [{"start_offset": 0, "end_offset": 3, "label": "B"}, {"start_offset": 3, "end_offset": 8, "label": "A"}],
        {"entities": [[0, 3, "B"], [4, 7, "A"]]},
    ],
    ids=["doccano", "spaCy", "Label Studio", "doccano's relations", "spaCy's training data"],
)
def test_the_formats_of_annotation_tools_are_read(cell: Any, tmp_path: Path) -> None:
    rows = [{"text": f"one two {number}", "spans": cell} for number in range(4)]
    write_rows(tmp_path / "train.jsonl", rows)
    write_rows(tmp_path / "test.jsonl", rows[:1])
    fitted = fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    target = fitted.preprocessor.target
    assert isinstance(target, SpanTarget)
    assert target.types == ["A", "B"]
    examples = prepare_examples(TrainJobSpec.model_validate(spec_of(tmp_path)), fitted)["test"]
    spans = fitted.preprocessor.input.batch(examples)["spans"]
    assert spans.tolist() == [[[0, 3, 1], [4, 7, 0]]]


def test_rows_of_parquet_and_csv_are_read_alike(tmp_path: Path) -> None:
    rows = [{"text": f"one two {number}", "spans": [{"start": 0, "end": 3, "label": "A"}]} for number in range(4)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    lines = [f'one two {number},"[[0, 3, ""A""]]"' for number in range(4)]
    (tmp_path / "train.csv").write_text("\n".join(["text,spans", *lines]))
    found = []
    for name in ("train.parquet", "train.csv"):
        source = {"uri": str(tmp_path / name)}
        found.append(fit(TrainJobSpec.model_validate(spec_of(tmp_path, train=source, test=source))))
    assert found[0].contents == found[1].contents


def test_wrong_spans_are_named_with_their_rows(tmp_path: Path) -> None:
    cells: list[Any] = [
        [[0, 3, "A"]],
        [[0, 5, "A"], [4, 7, "B"]],
        [[0, 99, "A"]],
        [[2, 2, "A"]],
        [[3, 4, "A"]],
        [[-1, 3, "A"]],
        [[0, 3]],
        [[0.5, 3, "A"]],
        [[0, 3, ""]],
        "A",
        None,
        [{"start": 0, "end": 3, "labels": ["A", "B"]}],
        [{"start": 0, "end": 3, "text": "two", "label": "A"}],
        [{"start": 0, "end": 7, "text": "one\\ntwo", "label": "A"}],
    ]
    rows = [{"text": f"one two {number}", "spans": cell} for number, cell in enumerate(cells)]
    write_rows(tmp_path / "train.jsonl", rows)
    write_rows(tmp_path / "test.jsonl", [{"text": "a", "spans": [[0, 1, "A"]]}, {"text": "b", "spans": [[0, 1, "C"]]}])
    with pytest.raises(DataError) as caught:
        fit(TrainJobSpec.model_validate(spec_of(tmp_path, validation={"uri": str(tmp_path / "test.jsonl")})))
    found = str(caught.value)
    assert "12 of 14 rows cannot be used" in found
    assert "line 2" in found
    for words in (
        "spans overlap",
        '[0, 99, "A"], but the text has 9 characters',
        '2 rows: column "spans": a span is empty or blank',
        "a span starts before the text",
        "a span is [start, end, type]",
        "whole numbers of characters",
        "a span's type must be a text",
        "'A' is not JSON",
        "write [] for a text without spans",
        "a span needs exactly one type",
        "the text of a span differs from the text at its offsets",
        'but the text has "one" there',
    ):
        assert words in found
    assert 'no span of this type: "C"; known types are A' in found


@pytest.mark.parametrize(
    ("text", "span", "kind", "words"),
    [
        ("\N{GRINNING FACE} Ada met Bob", {"start": 11, "end": 14, "text": "Bob"}, "UTF-16 code units", "Bob"),
        ("\N{GRINNING FACE} Ada met Bob", {"start": 11, "end": 14}, "UTF-16 code units", "Bob"),
        ("\N{GRINNING FACE} Ada met Bob", {"start": 3, "end": 6, "text": "Ada"}, "UTF-16 code units", "Ada"),
        ("Zoë met Bob", {"start": 9, "end": 12, "text": "Bob"}, "bytes of UTF-8", "Bob"),
        ("Zoë met Bob", {"start": 5, "end": 8, "text": "met"}, "bytes of UTF-8", "met"),
    ],
)
def test_offsets_that_count_other_units_are_named(text: str, span: dict[str, Any], kind: str, words: str) -> None:
    bad: list[RowError] = []
    cells = [json.dumps([{**span, "labels": ["A"]}])]
    rows = Rows(pa.table({"text": [text], "spans": cells}), lambda index: RowLocation(row_number(index)))
    read_spans(rows, "text", "spans", bad.append)
    [error] = bad
    assert f"the offsets of a span look like {kind}, not characters" in str(error)
    assert f'which is "{words}" if counted so; convert the offsets of all rows' in str(error)
    convert = re.findall("`([^`]+)`", str(error))[0]
    start, end = (eval(convert, {"text": text, "offset": span[name]}) for name in ("start", "end"))
    assert text[start:end] == words


def test_types_that_differ_in_case_or_unicode_form_alone_are_refused(tmp_path: Path) -> None:
    rows = [{"text": f"one {number}", "spans": [[0, 3, "Per" if number else "PER"]]} for number in range(5)]
    write_rows(tmp_path / "train.jsonl", rows)
    write_rows(tmp_path / "test.jsonl", rows[:1])
    with pytest.raises(DataError, match=r'only in case or Unicode form: "PER" \(1 spans\) and "Per" \(4 spans\)'):
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    rows = [{"text": f"one {number}", "spans": [[0, 3, "é" if number else "e\u0301"]]} for number in range(5)]
    write_rows(tmp_path / "train.jsonl", rows)
    with pytest.raises(DataError, match="types differ only in case or Unicode form"):
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))
    write_rows(tmp_path / "train.jsonl", [{"text": f"one {number}", "spans": []} for number in range(5)])
    with pytest.raises(DataError, match="no row has a span"):
        fit(TrainJobSpec.model_validate(spec_of(tmp_path)))


def test_spans_inside_tokens_are_mentioned(data: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()]
    inside = [
        {"text": each["text"] + " house", "spans": [[len(each["text"]) + 2, len(each["text"]) + 4, "city"]]}
        for each in rows
    ]
    write_rows(tmp_path / "train.jsonl", inside)
    fitted = fit(TrainJobSpec.model_validate(spec_of(tmp_path, test={"uri": str(tmp_path / "train.jsonl")})))
    assert fitted.profile is not None
    note = next(note for note in fitted.profile.notes if "begin or end inside a token" in note)
    assert re.search(r'first "ou" in \S+train\.jsonl, line \d+: ', note), note


def test_tags_and_spans_are_converted_both_ways() -> None:
    starts, ends = np.array([0, 4, 8, 12]), np.array([3, 7, 11, 15])
    assert tags_of([(0, 7, "B"), (8, 11, "B"), (12, 14, "A")], starts, ends, ["A", "B"]).tolist() == [3, 4, 3, 1]
    assert list(runs_of(np.array([3, 4, 3, 1]))) == [(0, 2, 1), (2, 3, 1), (3, 4, 0)]
    assert list(runs_of(np.array([0, 2, 2, 4]))) == [(1, 3, 0), (3, 4, 1)]  # I without B, as seqeval reads it
    assert list(runs_of(np.array([0, 0]))) == []


def test_counts_are_those_of_the_definitions() -> None:
    true = [(0, 5, "A"), (6, 10, "B"), (20, 25, "A")]
    found = [(0, 5, "A"), (7, 10, "B"), (20, 25, "B"), (30, 31, "A")]
    assert counts_of(true, found) == (1, 1, 4, 3)
    f1, precision, recall, partial = scores_of(np.array([1, 1, 4, 3]))
    assert (precision, recall) == (1 / 4, 1 / 3)
    assert f1 == pytest.approx(2 * (1 / 4) * (1 / 3) / (1 / 4 + 1 / 3))
    assert partial == pytest.approx(2 * (1.5 / 4) * (1.5 / 3) / (1.5 / 4 + 1.5 / 3))
    assert counts_of([(0, 9, "A")], [(0, 3, "A"), (4, 9, "A")]) == (0, 1, 2, 1)  # a true span counts once
    assert scores_of(np.zeros(4)).tolist() == [1, 1, 1, 1]


def test_scores_by_type_and_in_all(data: Path) -> None:
    labels = np.array([written([(0, 2, "A")]), written([(3, 4, "B")]), written([])], object)
    predicted = np.array([written([(0, 2, "A")]), written([(3, 5, "B")]), written([])], object)
    scores = span_scores(labels, predicted, 3.0, 6)
    assert (scores.loss, scores.f1.value, scores.partial_f1.value) == (0.5, 0.5, 0.75)
    assert [(each.name, each.f1, each.partial_f1) for each in scores.types] == [("A", 1, 1), ("B", 0, 0.5)]
    assert SpanScores.model_validate_json(scores.model_dump_json(by_alias=True)) == scores
    assert SpanJudge().lead(labels, labels, predicted).f1.value == 0.5


def test_long_texts_are_read_in_windows(data: Path) -> None:
    spec = TrainJobSpec.model_validate(spec_of(data))
    fitted = fit(spec)
    torch.manual_seed(0)
    module = build(spec.model, fitted.preprocessor).eval()
    examples = prepare_examples(spec, fitted)["test"]
    assert examples.lengths.max() // 4 > 20
    every = collate(fitted.preprocessor, examples)
    with torch.inference_mode():
        together = module(**every.inputs)
        for number in (0, int(examples.lengths.argmax()), int(examples.lengths.argmin())):
            batch = collate(fitted.preprocessor, examples.take(np.array([number])))
            size = int(batch.inputs["mask"].sum())
            alone = module(**batch.inputs)[0, :size]
            torch.testing.assert_close(alone, together[number, :size], atol=1e-5, rtol=1e-4)  # whatever is beside it


def test_a_network_learns_spans_and_scores_them(data: Path, tmp_path: Path) -> None:
    spec = TrainJobSpec.model_validate(spec_of(data))
    fitted = fit(spec)
    torch.manual_seed(0)
    module = build(spec.model, fitted.preprocessor)
    objective = fitted.preprocessor.target.objective(spec, module)
    sets = prepare_examples(spec, fitted)
    batch = collate(fitted.preprocessor, sets["train"])
    optimizer = torch.optim.AdamW(module.parameters(), 1e-2)
    for _ in range(25):
        loss = objective.losses(module(**batch.inputs), batch).sum() / batch.weight
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    held = collate(fitted.preprocessor, sets["test"])
    scores = tally_batches(module, objective, [held], torch.device("cpu"), torch.float32).scores()
    assert isinstance(scores, SpanScores)
    assert scores.f1.value > 0.9
    assert [each.name for each in scores.types] == ["city", "person"]


@pytest.fixture(scope="module")
def run(data: Path) -> Path:
    return make_run(data / "run", spec_of(data))


def test_answers_are_spans_of_the_original_text(run: Path, data: Path) -> None:
    predictor = Predictor.load(run)
    rows = [json.loads(line) for line in (data / "test.jsonl").read_text().splitlines()]
    texts = ["", "  Oslo", *(each["text"] for each in rows)]
    answers = [json.loads(answer) for answer in predictor.predict(texts, batch_size=7)]
    assert answers[0] == []
    assert any(answers)
    for text, spans in zip(texts, answers, strict=True):
        for span in spans:
            assert 0 <= span["start"] < span["end"] <= len(text)
            assert text[span["start"] : span["end"]].strip() == text[span["start"] : span["end"]]
            assert 0 < span["probability"] <= 1
    scores = evaluate(Folder(str(run)), str(data / "test.jsonl"))
    assert isinstance(scores, SpanScores)
    labels = np.array([written([(start, end, kind) for start, end, kind in each["spans"]]) for each in rows], object)
    found = [[(each["start"], each["end"], each["type"]) for each in spans] for spans in answers[2:]]
    predicted = np.array([written(spans) for spans in found], object)
    assert scores.f1.value == pytest.approx(SpanJudge().estimates(labels, predicted).f1.value)
    with pytest.raises(UserError, match="a classifier of tokens predicts no classes"):
        predictor.predict_proba(texts)


@pytest.mark.parametrize("option", ["--text", "--row"])
def test_the_terminal_shows_the_words_of_each_span(run: Path, data: Path, option: str) -> None:
    texts = (json.loads(line)["text"] for line in (data / "test.jsonl").read_text().splitlines())
    answers = ((text, json.loads(answer)) for text in texts for answer in Predictor.load(run).predict([text]))
    text, spans = next((text, spans) for text, spans in answers if spans)
    given = text if option == "--text" else json.dumps({"text": text})
    done = CliRunner().invoke(app, ["predict", str(run), option, given], env={"COLUMNS": "200"}, catch_exceptions=False)
    shown = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines() if "│" in line]
    assert [line[:4] for line in shown] == [
        [text[each["start"] : each["end"]], each["type"], str(each["start"]), str(each["end"])] for each in spans
    ]


def test_a_long_span_is_shown_on_one_line() -> None:
    text = "Parameters\n----------\n" + "word " * 100
    span = FoundSpan(start=0, end=len(text), type="section", probability=1.0)
    [[words, *_]] = Spans(spans=[span]).lines(text)
    assert words == "Parameters ---------- " + ("word " * 100)[:38] + "…"


def test_known_strings_are_found_as_whole_words() -> None:
    texts = ["Oslo and New York", "may I? may I?", "May came"]
    labels = np.array([written([(0, 4, "city"), (9, 17, "city")]), written([]), written([(0, 3, "person")])], object)
    found = known_strings(texts, labels, ["New York, not Yorkshire or Osloer", "May and may"])
    assert [parsed(each) for each in found] == [[(0, 8, "city")], [(0, 3, "person")]]


def test_the_report_shows_types_and_confident_mistakes(data: Path, tmp_path: Path) -> None:
    run = Folder(str(make_run(tmp_path / "run", spec_of(data))))
    job = read_contents(run).job
    fitted = Fitted.load(run / "fitted")
    held = sample(job.spec, fitted, "test")
    spans = [parsed(label) for label in held.labels]
    index = next(number for number, own in enumerate(spans) if own)
    start, end, _ = spans[index][0]
    spans[index][0] = (start, end, "city" if spans[index][0][2] == "person" else "person")
    predicted = [written(own) for own in spans]
    kept = {"row": held.rows, "prediction": predicted, "label": held.labels.tolist()}
    chances = pa.array([[0.9] * len(own) for own in spans], pa.list_(pa.float32()))
    scores = span_scores(held.labels, np.array(predicted, object), 1.0, 10)
    finish_scored(run, pa.table({**kept, "probabilities": chances}), scores)
    found = compare_with_baselines(job, run, ["knownStrings"])
    assert found.baselines[0].error == ""
    assert found.baselines[0].standing is not None
    assert found.baselines[0].standing.main.value == 1.0
    page = Page(render(run))
    assert [line[0] for line in page.tables["types-test"]] == ["Type", "city", "person"]
    assert "The most confident mistakes" in page.text
    assert "probability 0.90" in page.text
    assert f"test.jsonl, row {index + 1}" in page.text, page.text


def test_init_proposes_it_for_spans(data: Path) -> None:
    text = proposed(str(data / "train.jsonl"), None, [], data)
    assert "tokenClassifier" in text
    assert "label: spans" in text
    assert "2 types; spans of each" in text
