"""Reports of every kind, of runs that were never trained."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from report_runs import (
    FUNCTION_JOB,
    LAYERS,
    RATE,
    TEXT_JOB,
    TUNED_JOB,
    epoch,
    finish,
    predict,
    searched,
    step,
    summary,
    write_run,
)
from trainjob.data.read.pictures import pictures
from trainjob.data.read.thumbnails import thumbnail
from trainjob.evaluation import language_scores
from trainjob.evaluation.paired import Estimate, estimate_scores, lead
from trainjob.evaluation.predictions import prediction_table
from trainjob.report.compare import compare, render_comparison
from trainjob.report.render import render
from trainjob.runs.comparison import Baseline, Cascade, CascadePoint, Comparison, write_comparison
from trainjob.runs.predictions import write_predictions
from trainjob.runs.trials import Trial, write_trial
from trainjob.runs.variants import Variant, Variants, write_variants
from trainjob.storage import Folder

LONG_NAMES = [
    "Rechtsschutzversicherungsgesellschaften",
    "comp.sys.ibm.pc.hardware.misc",
    "questions about an invoice that was paid twice, or not at all, or by somebody else",
    "https://example.com/categories/home-and-garden/kitchen?page=2",
    "日本語のとても長いクラスの名前",
    "O'Brien & <Sons>",
]
IMAGE_JOB = """\
apiVersion: trainjob.dev/v1alpha1
kind: TrainJob
metadata: {name: digits}
spec:
  model: {imageClassifier: {cnn: {}}}
  dataset: {train: {uri: /data/digits/train}}
"""
LANGUAGE_JOB = """\
apiVersion: trainjob.dev/v1alpha1
kind: TrainJob
metadata: {name: summaries}
spec:
  model: {causalLM: {pretrained: organization/a-decoder-with-a-long-name-1.5B-instruct, lora: {}}}
  dataset: {train: {uri: /data/summaries.jsonl}, text: [text]}
"""
TEXT = (
    "Dear customer, you have won <b>a prize</b>! Answer within 24 hours to https://example.com/prizes?customer=1 " * 3
)
ROWS = 90
RECORDS = [step(n, loss=2.0 / n, learning_rate=1e-3 / n, samples_per_second=100.0 + n % 7) for n in range(1, 41)] + [
    epoch(n, train_loss=1.0 / n, validation_loss=1.1 / n, validation_accuracy=0.2 * n, validation_f1=0.19 * n)
    for n in range(1, 5)
]


def text_with_baselines(folder: Path) -> str:
    run = write_run(folder, TEXT_JOB, RECORDS)
    finish(run, ["ham", "spam"])
    _predict(run, ["ham", "spam"], "model-validation")
    _predict(run, ["ham", "spam"], text=[f"{TEXT} {'Ωmega' * number}" for number in range(ROWS)])
    write_comparison(run, _comparison())
    return render(run)


def long_class_names(folder: Path) -> str:
    run = _of_classes(folder, LONG_NAMES)
    _predict(run, LONG_NAMES, text=["", "x" * 1000, *["\u0645\u0631\u062d\u0628\u0627 " * 50] * (ROWS - 2)])
    return render(run)


def two_long_class_names(folder: Path) -> str:
    run = _of_classes(folder, LONG_NAMES[:4:3])
    for name in ("model", "model-validation"):
        _predict(run, LONG_NAMES[:4:3], name)
    return render(run)


def forty_classes(folder: Path) -> str:
    return render(_of_classes(folder, [f"class-{number}" for number in range(40)]))


def hundred_classes(folder: Path) -> str:
    return render(_of_classes(folder, [f"class number {number}" for number in range(100)]))


def images(folder: Path) -> str:
    run = write_run(folder, IMAGE_JOB, RECORDS)
    digits = [str(digit) for digit in range(10)]
    finish(run, digits, _confusion(10))
    _predict(run, digits, thumbnail=[_thumbnail(number) for number in range(ROWS)])
    return render(run)


def language_model(folder: Path) -> str:
    records = [step(n, loss=4.0 / n, learning_rate=1e-3, tokens_per_second=5e4, padding=0.1) for n in range(1, 41)]
    records += [epoch(n, train_loss=4.0 / n, validation_loss=4.1 / n, validation_perplexity=60.0 / n) for n in (1, 2)]
    run = write_run(folder, LANGUAGE_JOB, records)
    sets = {name: language_scores(3.6 * 123_456, 123_456).model_dump(by_alias=True) for name in ("validation", "test")}
    run.write("evaluation.json", json.dumps(sets).encode())
    run.write("summary.json", summary(name="summaries", parameters=494_032_768, rows={"train": 1200}))
    return render(run)


def function(folder: Path) -> str:
    names = ("loss", "mean_absolute_percentage_error_over_all_horizons", "hits", "r2")
    run = write_run(folder, FUNCTION_JOB, [epoch(n, **dict.fromkeys(names, 0.5 / n)) for n in range(1, 30)])
    metrics = dict.fromkeys(names, 123456.789)
    checkpoint = "/very/long/path/to/the/storage/of/the/team/runs/own-loop/checkpoint_2026-11-28_00-11-22.333333"
    run.write("summary.json", summary(name="own-loop", metrics=metrics, checkpoint=checkpoint))
    return render(run)


def search(folder: Path) -> str:
    return render(searched(folder, 30))


def comparison_of_runs(folder: Path) -> str:
    return render_comparison(compare([_compared(folder, number) for number in range(4)]))


def smaller_models(folder: Path) -> str:
    run = _of_classes(folder, ["ham", "spam"])
    score = Estimate(value=0.8123, low=0.7901, high=0.8345)
    variants = [
        Variant(
            name=name,
            size=123_456_789,
            latency_p50=0.01234,
            latency_p99=0.12345,
            rows_per_second=1234.5,
            memory=2_345_678_901,
            accuracy=score,
            f1=score,
            agreement=0.987,
        )
        for name in ("original", "pruned-50", "pruned-50-onnx-int8")
    ]
    cpu = "AMD EPYC 7B13 64-Core Processor"
    write_variants(
        run,
        Variants(set_name="test", rows=2000, of_rows=9999, batch_size=64, threads=2, cpu=cpu, variants=variants),
    )
    return render(run)


def under_way(folder: Path) -> str:
    return render(write_run(folder, TEXT_JOB, RECORDS[:12] + RECORDS[40:41]))


def search_before_its_first_trial(folder: Path) -> str:
    return render(write_run(folder, TUNED_JOB, []))


def search_under_way(folder: Path) -> str:
    """Some trials are running, one of them without an epoch; one was stopped; one failed with a long message."""
    run = searched(folder, 5)
    parameters = {RATE: 0.00123456789012, LAYERS: 2}
    error = "CUDA out of memory: tried to allocate 2.00 GiB; lower spec.training.batchSize " * 3
    write_trial(run, Trial(number=6, parameters=parameters, state="running"))
    write_trial(run, Trial(number=7, parameters=parameters, state="running", value=0.5, epochs=1, seconds=12.3))
    write_trial(run, Trial(number=8, parameters=parameters, state="stopped", value=0.9, epochs=1, seconds=12.3))
    write_trial(run, Trial(number=9, parameters=parameters, state="failed", error=error))
    return render(run)


REPORTS: dict[str, Callable[[Path], str]] = {
    made.__name__: made
    for made in (
        text_with_baselines,
        long_class_names,
        two_long_class_names,
        forty_classes,
        hundred_classes,
        images,
        language_model,
        function,
        search,
        comparison_of_runs,
        smaller_models,
        under_way,
        search_before_its_first_trial,
        search_under_way,
    )
}
"""The function that writes each report into an empty folder."""


def _comparison() -> Comparison:
    labels = np.arange(2000) % 2
    right = np.where(np.arange(2000) < 1700, labels, 1 - labels)
    worse = np.where(np.arange(2000) > 500, labels, 1 - labels)
    point = CascadePoint(
        threshold=0.8123,
        asked=1234,
        tokens=1_234_567,
        cost=1.23,
        accuracy=Estimate(value=0.8123, low=0.7901, high=0.8345),
        f1=Estimate(value=0.8123, low=0.7901, high=0.8345),
    )
    return Comparison(
        set_name="test",
        rows=2000,
        of_rows=20_000,
        model=estimate_scores(labels, right, 2),
        baselines=[
            Baseline(
                name="mostFrequent", standing=estimate_scores(labels, 0 * labels, 2), lead=lead(labels, right, worse, 2)
            ),
            Baseline(name="tfidf", standing=estimate_scores(labels, right, 2), lead=lead(labels, right, right, 2)),
            Baseline(
                name="languageModel",
                standing=estimate_scores(labels, worse, 2),
                lead=lead(labels, worse, right, 2),
                notes=["'I cannot say, as neither of these categories fits' was answered 12 times"],
                cascade=Cascade(rows=2000, points=[point, point, point]),
            ),
            Baseline(name="pixels", error="ConnectionError: https://model.example.com:8443/v1/chat/completions " * 3),
        ],
    )


def _predict(run: Folder, classes: list[str], name: str = "model", **columns: object) -> None:
    """Every third row is wrong, surely or not."""
    labels = np.arange(ROWS) % len(classes)
    predicted = np.where(np.arange(ROWS) % 3 == 0, (labels + 1) % len(classes), labels)
    probability = np.linspace(0.51, 0.999, ROWS)
    probabilities = np.tile((1 - probability) / (len(classes) - 1), (len(classes), 1)).T
    probabilities[np.arange(ROWS), predicted] = probability
    files = [f"/data/a/long-name-of-a-folder/{'x' * 60}-{number % 3}.csv" for number in range(ROWS)]
    predict(run, classes, labels, probabilities, name, file=files, file_row=np.arange(ROWS) * 12345, **columns)


def _thumbnail(number: int) -> bytes:
    """A thumbnail; their sizes range from 8 x 8 to a thin line."""
    size = [(8, 8), (640, 480), (480, 640), (2000, 3)][number % 4]
    image = Image.linear_gradient("L").resize(size)
    table = pa.table({"image": [_png(image)]})
    return thumbnail(next(pictures(table, str)))


def _png(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def _of_classes(folder: Path, classes: list[str]) -> Folder:
    run = write_run(folder, TEXT_JOB, RECORDS)
    finish(run, classes, _confusion(len(classes)))
    return run


def _confusion(classes: int) -> np.ndarray:
    """Most rows are right; some of each class are taken for the next one."""
    return np.eye(classes, dtype=np.int64) * 1234 + 56 * np.roll(np.eye(classes, dtype=np.int64), 1, axis=1)


def _compared(folder: Path, number: int) -> Folder:
    name = f"docstrings-with-a-long-name-{number}"
    other = f"epochs: {4 + number}, optimizer: {{adamW: {{learningRate: {10.0**-number}}}}}"
    run = write_run(folder / name, TEXT_JOB.replace("mail", name, 1).replace("epochs: 4", other), RECORDS)
    finish(run, ["ham", "spam"])
    labels = np.arange(200) % 2
    predicted = np.where(np.arange(200) < 150 + 10 * number, labels, 1 - labels)
    write_predictions(run, "model", prediction_table(np.arange(200), predicted, ["ham", "spam"], None, labels))
    return run
