"""`trainjob compress`: makes smaller variants of a run's model, and measures them all and the original."""

import shutil
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import torch

from trainjob.api import TrainJob
from trainjob.baselines.rows import drawn, taken
from trainjob.compress.export import export, quantize
from trainjob.compress.fine_tune import fine_tune, load_rows
from trainjob.compress.measure import BATCH_SIZE, all_threads, measure
from trainjob.compress.prune import prune
from trainjob.data import Examples, Fitted, check_unchanged
from trainjob.data.batches.prepare import read_set
from trainjob.data.read.rows import row_number
from trainjob.driver.summarize import hardware
from trainjob.errors import UserError, listed
from trainjob.kinds import kinds_with
from trainjob.kinds.facts import WHY_NOT
from trainjob.kinds.targets.class_losses import sample_losses
from trainjob.models import load_model, save_model
from trainjob.models.onnx import FILE
from trainjob.report.render import write_report
from trainjob.runs.contents import read_contents
from trainjob.runs.files import FITTED, VARIANTS
from trainjob.runs.lock import locked
from trainjob.runs.model import local_copy, model_folder, variants_of, write_variant
from trainjob.runs.variants import ORIGINAL, Variant, Variants, write_variants
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder

if TYPE_CHECKING:
    from trainjob.kinds.text_classifier.network import TextModule

MAX_ROWS = 10_000
"""Rows that each variant predicts."""
EXAMPLE_ROWS = 64
BATCHES_FOR_IMPORTANCE = 50

Say = Callable[[str], None]


@dataclass(frozen=True)
class VariantRequest:
    """The variants to make, all from the pruned model if there is one."""

    prune: float | None = None
    """Share of heads and channels to remove."""
    onnx: bool = False
    int8: bool = False


def compress(run: Folder, request: VariantRequest, say: Say = lambda _: None) -> Variants:
    """Makes the variants, replacing those of the same names, and measures all variants of the run. `say` is called
    with a description of each step.

    Raises UserError if the run is in progress, or has no model that can be compressed.
    """
    contents = read_contents(run)
    model = model_folder(run)  # raises for a function's run, and one that has not finished
    facts = contents.job.spec.model.facts
    if "compression" not in facts.abilities:
        kinds = listed(kinds_with("compression"))
        raise UserError(f"{run.uri} is {facts.a_noun}; compression is for {kinds}: {WHY_NOT['compression']}")
    if request.prune is not None and "pruning" not in facts.abilities:
        kinds = listed(kinds_with("pruning"))
        raise UserError(f"{run.uri} is {facts.a_noun}; --prune is for {kinds}: {WHY_NOT['pruning']}")
    if request.onnx or request.int8:
        _check_packages()
    with locked(run), scratch_folder() as scratch, local_copy(model) as original:
        fitted = check_unchanged(contents.job.spec, Fitted.load(run / FITTED))
        for name, folder in _made(contents.job, fitted, original, request, scratch, say):
            write_variant(folder, run, name)
        variants = _measured(contents.job, run, fitted, original, scratch, say)
        write_variants(run, variants)
        write_report(run)
    return variants


def _check_packages() -> None:
    """Raises UserError for missing packages, before pruning, which takes long."""
    missing = [name for name in ("onnx", "onnxruntime", "onnxscript") if find_spec(name) is None]
    if missing:
        raise UserError(f"--onnx and --int8 need {', '.join(missing)}: pip install 'trainjob[compress]'")


def _made(job: TrainJob, fitted: Fitted, original: Path, request: VariantRequest, scratch: Path, say: Say) -> Any:
    """Makes the variants one by one, and yields the name and the folder of each."""
    base, prefix = original, ""
    if request.prune is not None:
        name = f"pruned-{request.prune:g}"
        say(f"{name}: prunes and trains again")
        base, prefix = _pruned(job, fitted, original, request.prune, scratch, scratch / name), f"{name}-"
        yield name, base
    if not (request.onnx or request.int8):
        return
    graph = _new(scratch / f"{prefix}onnx")
    say(f"{graph.name}: exports")
    classifier, preprocessor = load_model(base)
    export(classifier, preprocessor, _examples(job, fitted), graph)
    if request.onnx:
        yield graph.name, graph
    if request.int8:
        small = _new(scratch / f"{prefix}int8")
        say(f"{small.name}: quantizes")
        quantize(graph / FILE, preprocessor, classifier.problem_type, small)
        yield small.name, small


def _pruned(job: TrainJob, fitted: Fitted, original: Path, share: float, scratch: Path, folder: Path) -> Path:
    loaded, preprocessor = load_model(original)
    classifier = cast("TextModule", loaded)  # the only kind that can be pruned
    rows = load_rows(job.spec, fitted)
    batches = islice(rows.training.epoch(0), BATCHES_FOR_IMPORTANCE)
    prune(classifier, share, batches, sample_losses(job.spec.model, fitted.preprocessor.target))
    fine_tune(classifier, fitted.preprocessor, job.spec, rows, _new(scratch / "fine-tuning"))
    save_model(classifier, preprocessor, folder)
    return folder


def _examples(job: TrainJob, fitted: Fitted) -> list[dict[str, torch.Tensor]]:
    """Inputs of some held-out rows, in batches of several sizes."""
    rows = _held_back(job, fitted, EXAMPLE_ROWS)[0]
    values = fitted.preprocessor.input.transform(rows, row_number)
    examples = Examples.from_table(pa.table({"values": values}))
    batches = np.split(np.arange(len(examples)), [2, len(examples) // 2])
    inputs = [fitted.preprocessor.input.batch(examples.take(batch)) for batch in batches if len(batch)]
    return [{name: torch.from_numpy(array) for name, array in each.items()} for each in inputs]


def _held_back(job: TrainJob, fitted: Fitted, most: int) -> tuple[pa.Table, np.ndarray]:
    """Draws a limited number of rows that the model was not trained on, by the seed, and their classes int64 [n]."""
    assert job.spec.dataset is not None
    name = job.spec.dataset.held_out_set
    chosen = drawn(fitted.rows[name], most, job.spec.training.seed)
    columns = fitted.preprocessor.input.columns
    found = [(rows.table.select(columns), labels) for rows, labels in taken(read_set(job.spec, fitted, name), chosen)]
    return pa.concat_tables([table for table, _ in found]), np.concatenate([labels for _, labels in found])


def _measured(job: TrainJob, run: Folder, fitted: Fitted, original: Path, scratch: Path, say: Say) -> Variants:
    assert job.spec.dataset is not None
    set_name = job.spec.dataset.held_out_set
    rows, labels = _held_back(job, fitted, MAX_ROWS)
    judge, threads = fitted.preprocessor.target.judge, all_threads()
    measured: dict[str, dict[str, Any]] = {}
    for name in (ORIGINAL, *variants_of(run)):
        say(f"{name}: measures")
        with nullcontext(original) if name == ORIGINAL else local_copy(run / VARIANTS / name) as folder:
            measured[name] = measure(folder, rows, threads, scratch)
    predicted = {name: judge.values(pa.chunked_array([each.pop("predicted")])) for name, each in measured.items()}
    estimates: dict[str, Any] = {name: judge.estimates(labels, each) for name, each in predicted.items()}
    return Variants(
        set_name=set_name,
        rows=len(rows),
        of_rows=fitted.rows[set_name],
        batch_size=BATCH_SIZE,
        threads=threads,
        cpu=hardware("cpu").cpu,
        variants=[
            Variant(
                name=name,
                accuracy=estimates[name].accuracy,
                f1=estimates[name].f1,
                agreement=_agreement(predicted[name], predicted[ORIGINAL]),
                **each,
            )
            for name, each in measured.items()
        ],
    )


def _agreement(one: np.ndarray, other: np.ndarray) -> float:
    """The fraction of rows with the same prediction, [n, ...]."""
    return float(np.mean((one == other).reshape(len(one), -1).all(axis=1)))


def _new(folder: Path) -> Path:
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder
