"""Measures the cost and the result of tuning, on the docstrings of installed packages.

    python examples/make_docstrings.py                   # writes the data
    python benchmarks/tuning.py --parts cost asha        # on an idle machine
    python benchmarks/tuning.py --parts held-back [--pretrained FOLDER]

- cost: a random search, compared with training its trials by hand: `trainjob run` for one after another, in as many
  lanes as the search has, each with one thread. Of these runs, only the seconds of training, validation and checkpoints
  count, as if the rows had been prepared once and the processes already existed.
- asha: the same search with ASHA: its time, its best validation F1, and the time when it first comes within 0.01 of the
  full search's best.
- held-back: subpackages (such as `numpy.linalg`) are held back as the test set; neither training, tuning nor any choice
  uses them. The best trial's model is compared with TF-IDF + logistic regression tuned by cross-validation, and, if
  given, with an encoder from the Hugging Face hub with default settings.
"""

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from trainjob.tuning.search import REDUCTION

EXAMPLES = Path(__file__).parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES))

from baseline_tfidf import fit, read  # noqa: E402
from make_docstrings import MAX_ROWS, NAMES, Row, docstrings, is_new, source_files  # noqa: E402

TUNED = EXAMPLES / "docstrings-tuned.yaml"
PLAIN = EXAMPLES / "docstrings.yaml"
COLUMNS = ["docstring"], "package"
ORDERS = 300
HELD_BACK = 0.2
"""Approximate fraction of each package's docstrings."""
LARGEST_PART = 0.3
"""Fraction of a package: a larger part is never held back."""


def train(yaml: Path, folder: Path, name: str, settings: dict[str, Any]) -> Path:
    """The folder of a finished run with these fields set."""
    values = {"metadata.name": name, "spec.storage.uri": folder, "spec.baselines": "{}"} | settings
    options = [part for path, value in values.items() for part in ("--set", f"{path}={value}")]
    trainjob = Path(sys.executable).parent / "trainjob"
    subprocess.run([trainjob, "run", yaml, *options], check=True, stdout=subprocess.DEVNULL)
    return folder / name


def read_json(file: Path) -> Any:
    return json.loads(file.read_text())


def trials_of(run: Path) -> list[dict[str, Any]]:
    return [read_json(file) for file in sorted(run.glob("trials/*/trial.json"))]


def seconds_by_hand(trials: Sequence[dict[str, Any]], lanes: int, folder: Path, settings: dict[str, Any]) -> float:
    """Seconds of the longest lane; each lane takes the next trial as soon as it is free."""
    left = iter(trials)
    lock = threading.Lock()
    spent = [0.0] * lanes

    def work(lane: int) -> None:
        while True:
            with lock:
                trial = next(left, None)
            if trial is None:
                return
            parameters = {f"spec.{path}": value for path, value in trial["parameters"].items()}
            alone = {"spec.workers.count": 1, "spec.workers.cpus": 1, "spec.dataset.loader": "dataLoader"}
            run = train(PLAIN, folder, f"by-hand-{trial['number']}", settings | alone | parameters)
            seconds = read_json(run / "summary.json")["seconds"]
            spent[lane] += sum(seconds[stage] for stage in ("training", "validation", "checkpoints"))

    threads = [threading.Thread(target=work, args=(lane,)) for lane in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(spent)


def measure_searches(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str, str, bool]]:
    """Figure, aim, result, and whether it meets the aim."""
    length = {"spec.training.epochs": arguments.epochs, "spec.dataset.train.uri": _first(arguments.rows, folder)}
    size = {"spec.tuning.trials": arguments.trials, "spec.tuning.parallel": arguments.parallel}
    full = train(TUNED, folder, "full", length | size | {"spec.tuning.scheduler": "none"})
    trials = trials_of(full)
    seconds = read_json(full / "summary.json")["seconds"]["tuning"]
    if "cost" in arguments.parts:
        by_hand = seconds_by_hand(trials, arguments.parallel, folder, length)
        title = f"{len(trials)} trials of {arguments.epochs} epochs, {arguments.parallel} at a time, beside by hand"
        measured = f"{seconds / by_hand:.2f} x ({seconds:.0f} s and {by_hand:.0f} s)"
        yield title, "<= 1.15 x", measured, seconds <= 1.15 * by_hand
    if "asha" in arguments.parts:
        halved = train(TUNED, folder, "asha", length | size | {"spec.tuning.scheduler": "asha"})
        asha_seconds = read_json(halved / "summary.json")["seconds"]["tuning"]
        best, asha_best = (max(trial["value"] for trial in each) for each in (trials, trials_of(halved)))
        epochs, asha_epochs = (sum(trial["epochs"] for trial in each) for each in (trials, trials_of(halved)))
        measured = f"{asha_seconds / seconds:.2f} x ({asha_seconds:.0f} s; {asha_epochs} of {epochs} epochs)"
        yield "the same with ASHA: its time", "<= 0.5 x", measured, asha_seconds <= 0.5 * seconds
        measured = f"{asha_best:.4f} beside {best:.4f}"
        yield "... its best validation F1", "within 0.01", measured, abs(asha_best - best) <= 0.01
        reached = seconds_until(best - 0.01, halved, asha_seconds)
        measured = f"{reached / seconds:.2f} x ({reached:.0f} s)"
        yield "... its time until it has that", "<= 0.5 x", measured, reached <= 0.5 * seconds
        orders = [asha_on_paper(full, arguments.parallel, random.Random(number)) for number in range(ORDERS)]
        shares = [each / seconds for each, _ in orders]
        near = sum(abs(found - best) <= 0.01 for _, found in orders)
        fast = sum(share <= 0.5 for share in shares)
        measured = f"{sum(shares) / ORDERS:.2f} x on average; in {fast} at most 0.5 x; in {near} within 0.01"
        yield f"... computed from the full search's curves, trials in {ORDERS} other orders", "", measured, True


def asha_on_paper(full: Path, parallel: int, chance: random.Random) -> tuple[float, float]:
    """Simulates ASHA on the trials of a full search in another order, with their recorded epochs: seconds and best
    value."""
    trials = [(each["seconds"] / each["epochs"], _curve(full, each["number"])) for each in trials_of(full)]
    chance.shuffle(trials)
    waiting = iter(trials)
    seen: dict[int, list[float]] = {REDUCTION**power: [] for power in range(10)}
    under_way = [(trial[0], number, 1, trial) for number, trial in enumerate(islice(waiting, parallel))]
    now = best = 0.0
    while under_way:
        under_way.sort()
        now, lane, epoch, trial = under_way.pop(0)
        value = trial[1][epoch - 1]
        best = max(best, value)
        others = seen.get(epoch, [])
        stops = bool(others) and value < np.percentile(others, 100 * (1 - 1 / REDUCTION))
        others.append(value)
        if not stops and epoch < len(trial[1]):
            under_way.append((now + trial[0], lane, epoch + 1, trial))
        elif following := next(waiting, None):
            under_way.append((now + following[0], lane, 1, following))
    return now, best


def seconds_until(value: float, run: Path, seconds: float) -> float:
    """Seconds until a trial of a search first reached this validation F1; infinity if none did."""
    records = [record for trial in trials_of(run) for record in _epochs(run, trial["number"])]
    start = max(record["time"] for record in records) - seconds
    return min((each["time"] - start for each in records if each["validation_f1"] >= value), default=float("inf"))


def _curve(run: Path, number: int) -> list[float]:
    """The validation F1 of a trial's epochs."""
    return [record["validation_f1"] for record in _epochs(run, number)]


def _epochs(run: Path, number: int) -> list[dict[str, Any]]:
    lines = (run / "trials" / f"{number:04d}" / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "epoch"]


def _first(rows: int | None, folder: Path) -> Path:
    """A table of the given number of training docstrings, or of all."""
    table = EXAMPLES / "data" / "docstrings" / "train.csv"
    if rows is None:
        return table
    with table.open(newline="", encoding="utf-8") as source, (folder / table.name).open("w", encoding="utf-8") as part:
        csv.writer(part).writerows(islice(csv.reader(source), rows + 1))
    return folder / table.name


def hold_back(chance: random.Random) -> tuple[list[Row], list[Row]]:
    """The training rows, and the rows of the held-back parts."""
    train_rows: list[Row] = []
    held: list[Row] = []
    seen: set[str] = set()
    for package in NAMES:
        parts: dict[str, list[Row]] = defaultdict(list)
        for file in source_files(package, chance):
            beneath = file.parts[len(file.parts) - file.parts[::-1].index(package) :]
            parts[Path(beneath[0]).stem] += [(text, package) for text in docstrings(file) if is_new(text, seen)]
        total = sum(map(len, parts.values()))
        taken: list[Row] = []
        for part in chance.sample(sorted(parts), len(parts)):
            if len(taken) < HELD_BACK * total and len(parts[part]) <= LARGEST_PART * total:
                taken += parts.pop(part)
        most = round(HELD_BACK * MAX_ROWS)
        held += chance.sample(taken, min(most, len(taken)))
        rest = [row for rows in parts.values() for row in rows]
        train_rows += chance.sample(rest, min(MAX_ROWS - most, len(rest)))
    chance.shuffle(train_rows)
    return train_rows, held


def measure_held_back(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str, str, bool]]:
    train_rows, held = hold_back(random.Random(arguments.seed))
    files = [folder / "train.csv", folder / "held-back.csv"]
    for file, rows in zip(files, (train_rows, held), strict=True):
        with file.open("w", newline="", encoding="utf-8") as opened:
            csv.writer(opened).writerows([(*COLUMNS[0], COLUMNS[1]), *rows])
    print(f"{len(train_rows):,} docstrings to train on, {len(held):,} held back", file=sys.stderr)
    data = {"spec.dataset.train.uri": files[0], "spec.dataset.test.uri": files[1]}
    baseline = np.array(fit(*read(files[0], *COLUMNS), 0).predict([text for text, _ in held]))
    size = {"spec.tuning.trials": arguments.trials, "spec.training.epochs": arguments.epochs}
    tuned = train(TUNED, folder, "tuned", data | size)
    yield _beside("the best of the trials", tuned, held, baseline)
    if arguments.pretrained is not None:
        yield _beside("the encoder with the defaults", _fine_tuned(arguments.pretrained, folder, files), held, baseline)


def _fine_tuned(encoder: Path, folder: Path, files: Sequence[Path]) -> Path:
    spec = {
        "model": {"textClassifier": {"pretrained": str(encoder.absolute())}},
        "dataset": {"text": COLUMNS[0], "label": COLUMNS[1]}
        | {name: {"uri": str(file)} for name, file in zip(("train", "test"), files, strict=True)},
        "training": {"epochs": 3},
        "workers": {"count": 2},
        "storage": {"uri": str(folder)},
    }
    yaml = folder / "encoder.yaml"
    document = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "encoder"},
        "spec": spec,
    }
    yaml.write_text(json.dumps(document))
    return train(yaml, folder, "encoder", {})


def _beside(name: str, run: Path, held: Sequence[Row], baseline: np.ndarray) -> tuple[str, str, str, bool]:
    from trainjob import Predictor
    from trainjob.evaluation.paired import estimate_scores, lead

    predicted = np.array(Predictor.load(run).predict([text for text, _ in held]))
    classes, numbers = np.unique([package for _, package in held], return_inverse=True)
    model, tfidf = (np.searchsorted(classes, each) for each in (predicted, baseline))
    ahead, own, other = (
        lead(numbers, model, tfidf, len(classes)).f1,
        estimate_scores(numbers, model, len(classes)).f1,
        estimate_scores(numbers, tfidf, len(classes)).f1,
    )
    measured = (
        f"{ahead.value:+.3f} ({ahead.low:+.3f} to {ahead.high:+.3f}): {own.value:.3f} ({own.low:.3f} to {own.high:.3f})"
        f" beside {other.value:.3f} ({other.low:.3f} to {other.high:.3f})"
    )
    return f"{name}, macro F1 on held-back parts beside TF-IDF", ">= +0.03", measured, ahead.value >= 0.03


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ["cost", "asha", "held-back"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--rows", type=int, help="to train on, for cost and asha; without it all")
    parser.add_argument("--seed", type=int, default=0, help="of the parts that are held back")
    parser.add_argument("--pretrained", type=Path, help="folder of an encoder")
    arguments = parser.parse_args()
    print("| figure | aim | measured | |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="trainjob-tuning-") as folder:
        if {"cost", "asha"} & set(arguments.parts):
            _show(measure_searches(arguments, Path(folder)))
        if "held-back" in arguments.parts:
            _show(measure_held_back(arguments, Path(folder)))


def _show(figures: Iterator[tuple[str, str, str, bool]]) -> None:
    for figure, aim, measured, is_met in figures:
        print(f"| {figure} | {aim} | {measured} | {'met' if is_met else 'missed'} |", flush=True)


if __name__ == "__main__":
    main()
