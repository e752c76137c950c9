"""The summary at the end of a run."""

from datetime import UTC, datetime

import numpy as np
import pytest

from trainjob.api.training_status import BestTrial
from trainjob.cli.summary import summary_lines
from trainjob.evaluation import ClassificationScores, Confusion
from trainjob.evaluation.paired import estimate_scores, lead
from trainjob.evaluation.scores.classes import Average
from trainjob.report.baselines import in_brief
from trainjob.runs.comparison import Baseline, Comparison
from trainjob.runs.summary import BestCheckpoint, Hardware, Summary, TrainingWorkers

SUMMARY = Summary(
    name="tags",
    started=datetime(2026, 1, 1, tzinfo=UTC),
    finished=datetime(2026, 1, 1, 0, 2, tzinfo=UTC),
    workers=TrainingWorkers(count=2, device="cpu", threads=1),
    seconds={"start": 10.0, "training": 75.0},
    hardware=Hardware(cpu="a processor", cores=2, memory_gib=8.0),
)


def test_a_classifiers_run() -> None:
    average = Average(precision=0.8, recall=0.7, f1=0.75)
    test = ClassificationScores(
        rows=1200,
        loss=0.3,
        accuracy=0.9,
        macro=average,
        weighted=average,
        per_class=[],
        confusion=Confusion(true=[], predicted=[], rows=[]),
    )
    best = BestCheckpoint(step=1400, epoch=7, metric="validation_loss", value=0.25)
    summary = SUMMARY.model_copy(update={"best_checkpoint": best, "stopped_early": True})
    assert summary_lines(summary, "/runs/tags", {"test": test}) == [
        "tags: succeeded",
        "  trained in  1 min 25 s (stopped early)",
        "  best        epoch 7, step 1,400: validation_loss 0.2500",
        "  test        accuracy 0.9000   F1 0.7500 (macro)   1,200 rows",
        "  model       /runs/tags/model",
        "  report      /runs/tags/report.html",
    ]


def test_the_baselines() -> None:
    labels = np.arange(100) % 2
    model, constant = np.where(np.arange(100) < 90, labels, 1 - labels), np.zeros(100, np.int64)
    comparison = Comparison(
        set_name="test",
        rows=100,
        of_rows=100,
        model=estimate_scores(labels, model, 2),
        baselines=[
            Baseline(
                name="mostFrequent",
                standing=estimate_scores(labels, constant, 2),
                lead=lead(labels, model, constant, 2),
            ),
            Baseline(name="tfidf", error="no words\nat all"),
        ],
    )
    lines = summary_lines(SUMMARY, "/runs/tags", {}, comparison)
    assert lines[2].startswith("  vs mostFrequent  F1 0.3333; the model is better by 0.5667 [0.")
    assert lines[3] == "  vs tfidf         could not be computed: no words at all"


def test_a_lead_is_never_negative() -> None:
    labels = np.arange(100) % 2
    good, poor = np.where(np.arange(100) < 90, labels, 1 - labels), np.where(np.arange(100) < 50, labels, 1 - labels)
    other = np.where(np.arange(100) > 10, labels, 1 - labels)
    found = estimate_scores(labels, good, 2)
    worse, equal = (
        in_brief(Baseline(name="tfidf", standing=found, lead=lead(labels, model, good, 2))) for model in (poor, other)
    )
    assert worse.startswith("F1 0.9000; the model is worse by 0.4000 [0.")
    assert equal.startswith("F1 0.9000; no clear difference from the model's: -0.0100 [-0.")


@pytest.mark.parametrize(
    ("right", "said"),
    [(50, "; tfidf is clearly better"), (88, "; tfidf scored better, maybe by chance"), (90, ""), (95, "")],
)
def test_the_first_line_names_a_baseline_that_scored_better(right: int, said: str) -> None:
    labels = np.arange(100) % 2
    model, other = (np.where(np.arange(100) < correct, labels, 1 - labels) for correct in (right, 90))
    tfidf = Baseline(name="tfidf", standing=estimate_scores(labels, other, 2), lead=lead(labels, model, other, 2))
    comparison = Comparison(
        set_name="test", rows=100, of_rows=100, model=estimate_scores(labels, model, 2), baselines=[tfidf]
    )
    assert summary_lines(SUMMARY, "/runs/tags", {}, comparison)[0] == f"tags: succeeded{said}"


def test_a_functions_run() -> None:
    summary = SUMMARY.model_copy(update={"metrics": {"bleu": 31.5}, "checkpoint": "/runs/tags/checkpoint_7"})
    assert summary_lines(summary, "/runs/tags", {}) == [
        "tags: succeeded",
        "  trained in    1 min 25 s",
        "  last metrics  bleu 31.50",
        "  checkpoint    /runs/tags/checkpoint_7",
        "  report        /runs/tags/report.html",
    ]


def test_a_report_that_is_not_there_is_not_named_as_if_it_were() -> None:
    assert summary_lines(SUMMARY, "/runs/tags", {}, has_report=False)[-1] == (
        "  report        /runs/tags/report.html is missing: `trainjob report /runs/tags` writes it"
    )


def test_a_search_ends_with_the_parameters_that_won() -> None:
    best = BestTrial(
        number=3, value=0.5, parameters={"training.batchSize": "32", "model.textClassifier.dropout": "0.1"}
    )
    lines = summary_lines(SUMMARY, "/runs/tags", {}, best_trial=best)
    assert "  best trial    3: batchSize 32, dropout 0.1" in lines


def test_a_function_without_reports() -> None:
    assert summary_lines(SUMMARY, "/runs/tags", {})[2] == "  last metrics  none: the function has reported none"


def test_the_step_that_a_function_reports_is_called_as_in_its_records() -> None:
    summary = SUMMARY.model_copy(update={"metrics": {"step": 40, "loss": 0.5}})
    assert summary_lines(summary, "/runs/tags", {})[2] == "  last metrics  reported_step 40   loss 0.5000"


def test_last_metrics_that_are_not_finite_are_kept_and_shown() -> None:
    summary = SUMMARY.model_copy(update={"metrics": {"loss": float("nan"), "norm": float("inf"), "epoch": 5}})
    read = Summary.model_validate_json(summary.model_dump_json(by_alias=True))
    assert summary_lines(read, "/runs/tags", {})[2] == "  last metrics  loss NaN   norm Infinity   epoch 5"
