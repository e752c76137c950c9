"""Several labels a row, for texts and images: learned, scored, answered, exported and compared."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from pyarrow.json import read_json
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, precision_score, recall_score
from sklearn.multiclass import OneVsRestClassifier
from transformers import pipeline

from predictor_runs import finish_scored, make_run
from report_runs import Page
from trainjob.api import TrainJobSpec
from trainjob.baselines.compare import compare_with_baselines
from trainjob.baselines.features import tfidf
from trainjob.baselines.rows import sample
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import collate
from trainjob.errors import UserError
from trainjob.evaluate import evaluate
from trainjob.evaluation.label_estimates import LabelJudge, name_lists
from trainjob.evaluation.scores.labels import LabelsScores, choose_thresholds, labels_scores
from trainjob.kinds import KINDS
from trainjob.kinds.targets.several_labels import SeveralLabels
from trainjob.models import build
from trainjob.predictor import Predictor, probabilities_of
from trainjob.report.render import render
from trainjob.runs.contents import read_contents
from trainjob.runs.predictions import read_predictions
from trainjob.storage import Folder

ENCODER = {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 200}
WORDS = {"sport": ["goal", "ball", "team"], "cook": ["flour", "oven", "sugar"], "sky": ["star", "moon", "comet"]}
NAMES = list(WORDS)


def write_texts(file: Path, rows: int, seed: int) -> Path:
    """Texts with words of each of their labels."""
    chance, lines = np.random.default_rng(seed), list[str]()
    for _ in range(rows):
        labels = [name for name, share in zip(WORDS, (0.5, 0.3, 0.2), strict=True) if chance.random() < share]
        words = [*chance.choice(["the", "a", "of", "and"], 3), *(chance.choice(WORDS[name]) for name in labels)]
        lines.append(json.dumps({"text": " ".join(map(str, chance.permutation(words))), "tags": labels}))
    file.write_text("\n".join(lines))
    return file


def spec_of(folder: Path, **model: Any) -> dict[str, Any]:
    return {
        "model": {"textClassifier": {"encoder": ENCODER, "maxLength": 16, "dropout": 0.0, **model}},
        "dataset": {
            "train": {"uri": str(folder / "train.jsonl")},
            "test": {"uri": str(folder / "test.jsonl")},
            "text": ["text"],
            "label": "tags",
        },
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_texts(folder / "train.jsonl", 300, 0)
    write_texts(folder / "test.jsonl", 80, 1)
    return folder


@pytest.fixture(scope="module")
def run(data: Path) -> Path:
    return make_run(data / "run", spec_of(data))


def labels_and_probabilities(rows: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(rows)
    has_label = chance.random((rows, labels)) < np.linspace(0.1, 0.6, labels)
    noise = chance.normal(0, 1, has_label.shape)
    return has_label, np.round(1 / (1 + np.exp(1 - 2 * has_label - noise)), 2).astype(np.float32)  # many are equal


@pytest.mark.parametrize(("rows", "count"), [(40, 3), (500, 8), (3000, 2)])
def test_scores_equal_those_of_scikit_learn(rows: int, count: int) -> None:
    labels, probabilities = labels_and_probabilities(rows, count)
    thresholds = choose_thresholds(labels, probabilities)
    predicted = probabilities.astype(np.float64) >= np.array(thresholds)
    names = [f"label {index}" for index in range(count)]
    found = labels_scores(names, labels, probabilities, thresholds, loss_sum=float(rows))
    each = f1_score(labels, predicted, average=None)
    np.testing.assert_allclose([label.f1 for label in found.per_label], each, atol=1e-6)
    assert found.f1.value == pytest.approx(each.mean(), abs=1e-6)
    assert found.micro_f1.value == pytest.approx(f1_score(labels, predicted, average="micro"), abs=1e-6)
    assert found.precision == pytest.approx(precision_score(labels, predicted, average="macro"), abs=1e-6)
    assert found.recall == pytest.approx(recall_score(labels, predicted, average="macro"), abs=1e-6)
    assert found.accuracy.value == pytest.approx(accuracy_score(labels, predicted), abs=1e-6)
    precisions = average_precision_score(labels, probabilities, average=None)
    assert [label.average_precision for label in found.per_label] == pytest.approx(precisions.tolist(), abs=1e-6)
    assert found.average_precision == pytest.approx(precisions.mean(), abs=1e-6)
    assert np.array(found.together).tolist() == (labels.T.astype(int) @ labels).tolist()
    for estimate in (found.f1, found.micro_f1, found.accuracy):
        assert estimate.low <= estimate.value <= estimate.high
    assert LabelsScores.model_validate_json(found.model_dump_json(by_alias=True)) == found


def test_a_label_without_rows_has_no_average_precision_and_the_usual_threshold() -> None:
    labels, probabilities = labels_and_probabilities(60, 3)
    labels[:, 1] = False
    thresholds = choose_thresholds(labels, probabilities)
    assert thresholds[1] == 0.5
    found = labels_scores(["a", "b", "c"], labels, probabilities, thresholds, 1.0)
    assert found.per_label[1].average_precision is None
    assert found.per_label[1].f1 == 0


def test_each_threshold_has_the_best_f1_of_all() -> None:
    labels, probabilities = labels_and_probabilities(300, 4)
    for index, threshold in enumerate(choose_thresholds(labels, probabilities)):
        scores = probabilities[:, index].astype(np.float64)
        best = max(f1_score(labels[:, index], scores >= other) for other in np.unique(scores))
        assert f1_score(labels[:, index], scores >= threshold) == pytest.approx(best)


def test_the_better_of_two_is_told() -> None:
    labels, probabilities = labels_and_probabilities(400, 3)
    judge, good, poor = LabelJudge(["a", "b", "c"]), probabilities > 0.5, probabilities > 0.1
    assert judge.lead(labels, good, poor).verdict == "better"
    assert judge.lead(labels, poor, good).verdict == "worse"
    almost = good.copy()
    almost[:3] ^= True
    assert judge.lead(labels, good, almost).verdict == "no clear difference", "only three rows tell them apart"
    assert judge.values(pa.chunked_array([name_lists(good, judge.names)])).tolist() == good.tolist()


@pytest.mark.parametrize("weights", [None, {"balanced": {}}, {"values": {"sport": 1.0, "cook": 2.5, "sky": 4.0}}])
def test_the_loss_is_that_of_pytorch_with_the_weights_of_positives(weights: Any, data: Path) -> None:
    fitted = fit(spec := TrainJobSpec.model_validate(spec_of(data, classWeights=weights)))
    target = fitted.preprocessor.target
    assert isinstance(target, SeveralLabels)
    assert target.names == sorted(NAMES)
    logits, labels = torch.randn(5, 3), (torch.rand(5, 3) < 0.5).float()
    module: Any = build(spec.model, fitted.preprocessor)
    found = target.objective(spec, module).losses(logits, Batch({}, labels))
    positives = torch.tensor([2.5, 4.0, 1.0]) if weights and "values" in weights else torch.ones(3)  # cook, sky, sport
    if weights and "balanced" in weights:
        positives = torch.tensor([(target.rows - count) / count for count in target.counts])
    expected = torch.nn.BCEWithLogitsLoss(pos_weight=positives)(logits, labels)
    assert found.mean().item() == pytest.approx(expected.item(), rel=1e-6)


def test_every_metric_of_the_scores_can_choose_a_checkpoint() -> None:
    labels, probabilities = labels_and_probabilities(60, 3)
    found = labels_scores(["a", "b", "c"], labels, probabilities, [0.5] * 3, 1.0).as_metrics("validation")
    for kind in ("textClassifier", "imageClassifier"):
        assert {*found, "train_loss"} == set(KINDS[kind].metrics)


def test_a_metric_of_several_labels_is_refused_where_rows_have_one(tmp_path: Path) -> None:
    for name in ("train", "test"):
        rows = [{"text": f"{word} {number}", "tags": word} for word in ("sun", "rain") for number in range(20)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    document = spec_of(tmp_path) | {"checkpoints": {"metric": "validation_micro_f1"}}
    fitted = fit(spec := TrainJobSpec.model_validate(document))
    with pytest.raises(
        UserError, match=r"spec\.checkpoints\.metric: validation_micro_f1 is for rows with several labels"
    ):
        fitted.preprocessor.target.objective(spec, build(spec.model, fitted.preprocessor))


def test_weights_name_exactly_the_labels(data: Path) -> None:
    fitted = fit(spec := TrainJobSpec.model_validate(spec_of(data, classWeights={"values": {"sport": 1.0}})))
    with pytest.raises(UserError, match=r"classWeights\.values: class 'cook' has no weight"):
        fitted.preprocessor.target.objective(spec, build(spec.model, fitted.preprocessor))


def test_a_network_learns_and_its_validation_scores_decide(data: Path) -> None:
    fitted = fit(spec := TrainJobSpec.model_validate(spec_of(data)))
    torch.manual_seed(0)
    module, target = build(spec.model, fitted.preprocessor), fitted.preprocessor.target
    objective, examples = target.objective(spec, module), prepare_examples(spec, fitted)
    batch = collate(fitted.preprocessor, examples["train"])
    optimizer = torch.optim.AdamW(module.parameters(), 1e-2)
    for _ in range(30):
        objective.losses(module(**batch.inputs), batch).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    tally, held = objective.tally(torch.device("cpu")), collate(fitted.preprocessor, examples["validation"])
    with torch.inference_mode():
        tally.add(held, module(**held.inputs))
    scores = tally.scores()
    assert isinstance(scores, LabelsScores)
    assert scores.f1.value > 0.95
    decided = target.decided(scores)
    assert isinstance(decided, SeveralLabels)
    assert decided.thresholds == [each.threshold for each in scores.per_label]
    assert SeveralLabels.load(decided.save()) == decided


def test_answers_use_the_thresholds_that_are_kept_with_the_model(run: Path, data: Path) -> None:
    predictor, rows = Predictor.load(run), [json.loads(line) for line in (data / "test.jsonl").read_text().splitlines()]
    texts = [row["text"] for row in rows]
    probabilities = predictor.predict_proba(texts)
    state = json.loads((run / "model" / "preprocessor.json").read_text())
    thresholds = np.quantile(probabilities, 0.6, axis=0).astype(np.float64).tolist()
    (run / "model" / "preprocessor.json").write_text(json.dumps(state | {"thresholds": thresholds}))
    predictor = Predictor.load(run)
    expected = [
        [name for name, given in zip(predictor.classes, row, strict=True) if given]
        for row in probabilities >= thresholds
    ]
    assert predictor.predict(texts) == expected
    reply = predictor.preprocessor.target.replies(predictor.outputs(texts), predictor.model)[0]
    assert reply.model_dump()["prediction"] == expected[0]
    assert list(reply.model_dump()["thresholds"].values()) != [0.5] * 3

    scores = evaluate(Folder(str(run)), str(data / "test.jsonl"))
    assert isinstance(scores, LabelsScores)
    labels = [[name in row["tags"] for name in predictor.classes] for row in rows]
    predicted = [[name in row for name in predictor.classes] for row in expected]
    assert scores.f1.value == pytest.approx(f1_score(labels, predicted, average="macro"), abs=1e-6)


def test_transformers_reads_the_same_model(run: Path, data: Path) -> None:
    texts = ["the goal and a comet", "sugar of the oven"]
    classify: Any = pipeline("text-classification", str(run / "model"), top_k=None, device="cpu")
    assert classify.model.config.problem_type == "multi_label_classification"
    found = [{each["label"]: each["score"] for each in row} for row in classify(texts)]
    predictor = Predictor.load(run)
    expected = [dict(zip(predictor.classes, row, strict=True)) for row in predictor.predict_proba(texts).tolist()]
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_model_is_compared_with_baselines_of_scikit_learn(data: Path, tmp_path: Path) -> None:
    run = Folder(str(make_run(tmp_path / "run", spec_of(data))))
    job, fitted = read_contents(run).job, Fitted.load(Folder(str(tmp_path / "run")) / "fitted")
    train, held = sample(job.spec, fitted, "train"), sample(job.spec, fitted, "test")
    probabilities = np.clip(held.labels + np.random.default_rng(0).normal(0, 0.4, held.labels.shape), 0, 1)
    names, predicted = fitted.preprocessor.target.classes, probabilities >= 0.5
    columns = {"prediction": name_lists(predicted, names), "label": name_lists(held.labels.astype(bool), names)}
    scores = labels_scores(names, held.labels, probabilities, [0.5] * 3, 1.0)
    finish_scored(run, pa.table({"row": held.rows, **columns}), scores)
    found = compare_with_baselines(job, run, ["mostFrequent", "tfidf"])
    baselines: list[Any] = found.baselines
    constant, words = baselines
    assert (constant.error, words.error) == ("", "")
    words_of = tfidf(train.values)
    features, held_features = words_of.of_training, words_of.transform(held.values)
    regression = LogisticRegression(C=10, solver="saga", max_iter=300, random_state=0)
    one_vs_rest = OneVsRestClassifier(regression).fit(features.astype(np.float32), train.labels)
    guessed = one_vs_rest.predict(held_features.astype(np.float32))
    assert words.standing.f1.value == pytest.approx(f1_score(held.labels, guessed, average="macro"), abs=1e-6)
    assert words.standing.micro_f1.value == pytest.approx(f1_score(held.labels, guessed, average="micro"), abs=1e-6)
    kept = Predictor.load(run.uri, variant="tfidf").answers(read_json(data / "test.jsonl"))
    assert kept["prediction"].to_pylist() == read_predictions(run, "tfidf")["prediction"].to_pylist()
    probabilities = one_vs_rest.predict_proba(held_features.astype(np.float32))
    np.testing.assert_allclose(probabilities_of(kept, names), probabilities, atol=1e-6)
    of_variant: Any = evaluate(run, str(data / "test.jsonl"), "tfidf")
    assert of_variant.f1.value == pytest.approx(words.standing.f1.value), "no thresholds are chosen by these rows"
    frequent = DummyClassifier(strategy="most_frequent").fit(features, train.labels).predict(held_features)
    assert constant.standing.f1.value == pytest.approx(
        f1_score(held.labels, frequent, average="macro", zero_division=0)
    )
    assert constant.standing.accuracy.value == pytest.approx(accuracy_score(held.labels, frequent))
    assert constant.lead.verdict == "better"
    assert read_contents(run).comparison == found

    page = Page(render(run))
    assert [line[0] for line in page.tables["labels-test"][1:]] == names
    assert page.tables["together-test"][0][1:] == names
    assert len(page.tables["pairs-test"]) == 4
    assert [line[0] for line in page.tables["baselines"][1:]] == ["model", "mostFrequent", "tfidf"]
    wrong = int((predicted != held.labels.astype(bool)).any(axis=1).sum())
    assert f"{wrong} of 80 test rows have a wrong label" in page.text
    assert "reliability" not in page.headings


def test_images_of_a_table_have_several_labels(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    bright = chance.random((60, 2)) < 0.5
    pixels = np.zeros((60, 8, 8), np.uint8)
    pixels[:, :4] = np.where(bright[:, 0], 200, 30)[:, None, None]
    pixels[:, 4:] = np.where(bright[:, 1], 200, 30)[:, None, None]
    files = pa.array([_png(image) for image in pixels], pa.binary())
    flags = {"top": bright[:, 0].astype(np.int64), "bottom": bright[:, 1]}
    lists = pa.array([[n for n, on in zip(flags, row, strict=True) if on] for row in bright], pa.list_(pa.string()))
    parquet.write_table(pa.table({"image": files, **flags, "tags": lists}), tmp_path / "a.parquet")
    spec = {
        "model": {"imageClassifier": {"mlp": {"hidden": [8]}}},
        "dataset": {"train": {"uri": str(tmp_path / "a.parquet")}},
    }
    found: list[np.ndarray] = []
    for number, labels in enumerate([{"labels": ["bottom", "top"]}, {"label": "tags"}]):
        run = make_run(tmp_path / f"run-{number}", spec | {"dataset": spec["dataset"] | labels})
        predictor = Predictor.load(run)
        assert predictor.classes == ["bottom", "top"]
        assert predictor.model.problem_type == "multi_label_classification"
        found.append(predictor.predict_proba(list(pixels)))
    assert found[0].tolist() == found[1].tolist()
    assert not np.allclose(found[0].sum(axis=1), 1)


def _png(image: np.ndarray) -> bytes:
    file = BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()
