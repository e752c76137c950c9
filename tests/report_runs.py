"""Runs' folders for the tests of reports, and a reader of the page."""

import json
import math
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa

from trainjob.api.data_profile import DataProfile
from trainjob.evaluation import Confusion, classification_scores
from trainjob.evaluation.predictions import ranked_table, with_names
from trainjob.runs.predictions import write_predictions
from trainjob.runs.summary import BestCheckpoint, Hardware, Summary, TrainingWorkers
from trainjob.runs.trials import Trial, trial_folder, write_trial
from trainjob.storage import Folder

TEXT_JOB = """\
apiVersion: trainjob.dev/v1alpha1
kind: TrainJob
metadata: {name: mail}
spec:
  model: {textClassifier: {encoder: {layers: 1}}}
  dataset: {train: {uri: /data/mail.csv}, text: [body], label: kind}
  training: {epochs: 4}
"""
FUNCTION_JOB = """\
apiVersion: trainjob.dev/v1alpha1
kind: TrainJob
metadata: {name: own-loop}
spec:
  model: {function: {name: "loop:train"}}
"""
RATE, LAYERS = "training.optimizer.adamW.learningRate", "model.textClassifier.encoder.layers"
TUNED_JOB = (
    TEXT_JOB
    + f"""\
  tuning:
    parameters:
      {RATE}: {{logUniform: [1.0e-5, 1.0e-1]}}
      {LAYERS}: {{choice: [1, 2]}}
    trials: 12
    search: random
"""
)
STARTED = datetime(2025, 3, 12, 14, 3, 5, tzinfo=UTC)
CONFUSION = np.array([[40, 10], [5, 45]])
VOID = {"meta", "br", "hr", "img", "link", "input", "wbr"}


class Page(HTMLParser):
    """The document's elements, the cells of its tables by id, its definitions, list items and visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.terms: dict[str, str] = {}
        self.items: list[str] = []
        self.open: list[str] = []
        self._table: list[list[str]] = []
        self._term = ""
        self.words: list[str] = []
        self.feed(html)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.elements.append((tag, named))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._table = self.tables.setdefault(named["id"], [])
        if tag == "tr":
            self._table.append([])
        if tag in ("td", "th"):
            self._table[-1].append("")
        if tag == "li":
            self.items.append("")
        if tag == "dt":
            self._term = ""
        if tag == "dd":
            self.terms[self._term] = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.words.append(data)
        if "td" in self.open or "th" in self.open:
            self._table[-1][-1] += data
        if "li" in self.open:
            self.items[-1] = " ".join(f"{self.items[-1]} {data}".split())
        if "dt" in self.open:
            self._term += data
        if "dd" in self.open:
            self.terms[self._term] += data

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]

    @property
    def headings(self) -> list[str]:
        return re.findall(r"id=(\w+)", " ".join(f"id={a['id']}" for tag, a in self.elements if tag == "h2"))


def step(number: int, **values: object) -> dict[str, object]:
    return {"kind": "step", "step": number, "epoch": (number - 1) // 10 + 1, "time": 0.0, **values}


def epoch(number: int, **values: object) -> dict[str, object]:
    return {"kind": "epoch", "step": 10 * number, "epoch": number, "time": 0.0, **values}


def write_run(folder: Path, job: str, records: list[dict[str, object]]) -> Folder:
    run = Folder(str(folder / "run"))
    run.write("trainjob.yaml", job.encode())
    run.write("metrics.jsonl", "".join(json.dumps(record) + "\n" for record in records).encode())
    return run


def summary(**changes: object) -> bytes:
    values: dict[str, object] = {
        "name": "mail",
        "started": STARTED,
        "finished": STARTED + timedelta(seconds=100),
        "workers": TrainingWorkers(count=2, device="cpu", threads=1),
        "hardware": Hardware(cpu="A processor", cores=2, memory_gib=15.5),
        **changes,
    }
    return Summary.model_validate(values).model_dump_json(by_alias=True).encode()


def finish(
    run: Folder, classes: list[str], confusion: np.ndarray = CONFUSION, profile: DataProfile | None = None
) -> None:
    validation = classification_scores(Confusion.of_matrix(confusion), 50.0, classes).model_dump(
        mode="json", by_alias=True
    )
    test = classification_scores(Confusion.of_matrix(confusion[::-1, ::-1].T), 30.0, classes).model_dump(
        mode="json", by_alias=True
    )
    run.write("evaluation.json", json.dumps({"validation": validation, "test": test}).encode())
    run.write(
        "summary.json",
        summary(
            parameters=1_234_567,
            rows={"train": 8000, "validation": 100, "test": 100},
            classes=len(classes),
            data=profile,
            precision="bfloat16",
            best_checkpoint=BestCheckpoint(step=20, epoch=2, metric="validation_loss", value=0.4321),
            seconds={"start": 10.0, "training": 60.0, "evaluation": 20.0},
            samples_per_second=2345.6,
            versions={"torch": "2.15.0"},
        ),
    )


def predict(
    run: Folder,
    classes: list[str],
    labels: np.ndarray,
    probabilities: np.ndarray,
    name: str = "model",
    **sources: object,
) -> None:
    """Writes the predictions `name` of a model that gives each row of labels int64 [n] these probabilities [n, C];
    `sources` are more columns."""
    ranked = np.argsort(-probabilities, axis=1, kind="stable")
    best = np.take_along_axis(probabilities, ranked, axis=1)
    table = with_names(ranked_table(np.arange(len(labels)), ranked, best, labels), classes)
    for title, column in sources.items():
        table = table.append_column(title, pa.array(column))
    write_predictions(run, name, table)


def searched(folder: Path, trials: int) -> Folder:
    """A run whose trials' values depend on the learning rate alone; the last one diverged."""
    run = write_run(folder, TUNED_JOB, [])
    for number in range(1, trials + 1):
        rate = 10.0 ** (-5 + 4 * (number - 1) / max(trials - 1, 1))
        value = abs(math.log10(rate) + 3) + 0.1
        parameters = {RATE: rate, LAYERS: 1 + number % 2}
        trial = Trial(number=number, parameters=parameters, state="done", value=value, epochs=2, seconds=61.0)
        if number == trials:
            trial = Trial(number=number, parameters=parameters, state="failed", error="training <diverged>")
        write_trial(run, trial)
        lines = [epoch(1, validation_loss=2 * value), epoch(2, validation_loss=value)]
        if trial.state == "done":
            content = "".join(json.dumps(line) + "\n" for line in lines)
            trial_folder(run, number).write("metrics.jsonl", content.encode())
    return run
