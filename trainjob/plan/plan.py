"""The plan of a TrainJob: what its data, steps and memory are before anything is trained."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import torch

from trainjob.api import TrainJob, TrainJobSpec
from trainjob.data import Examples, Fitted
from trainjob.data.batches.loaders import Shard
from trainjob.data.batches.prepare import prepared, read_set
from trainjob.doing import DOING, ROWS
from trainjob.driver.check import CheckedData
from trainjob.plan.gpu_fit import Alternative, Fit, alternatives_of, how_it_fits
from trainjob.plan.memory import NotTraceable, Traced
from trainjob.plan.speed import seconds_per_batch
from trainjob.precision import PRECISIONS, resolve_precision
from trainjob.pretrained.remote_model import local_model
from trainjob.schema.base import StrictModel
from trainjob.worker.step_plan import StepPlan

SAMPLE_ROWS, SAMPLE_BYTES = 20_000, 64 * 2**20
"""The most training rows, and about the most bytes of them, that are prepared."""


class Steps(StrictModel):
    """The steps of a training that does not stop early."""

    rows: int
    """Rows of an epoch, as the network takes them: short texts of a language model are packed into one."""
    tokens: int | None
    """Tokens of an epoch; none for images."""
    longest: int | None
    """Tokens of the longest row."""
    per_epoch: int
    total: int
    is_exact: bool
    """False if rows and tokens are extrapolated from the first training rows."""


class Need(StrictModel):
    """Bytes of tensors of one worker at the peak of a step."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    """Activations and everything else."""
    total: int


class Plan(StrictModel):
    """The rows, steps, memory and time that a TrainJob needs."""

    name: str
    rows: dict[str, int]
    """Usable rows of each set."""
    classes: int | None
    cut_share: float | None
    """Fraction of the training texts that are longer than maxLength, measured on a sample."""
    steps: Steps | None = None
    workers: int
    rows_per_worker: int | None = None
    """Rows of a batch for each worker."""
    precision: str | None = None
    """The precision of the forward pass."""
    memory: Need | None = None
    memory_unknown: str | None = None
    """Why the memory is not known."""
    capacity: int | None = None
    """Bytes of memory of a worker's GPU, if known."""
    fits: Fit | None = None
    alternatives: list[Alternative] = []
    """If it does not fit: settings that do."""
    seconds_per_step: float | None = None
    """The time of an optimizer step of one worker on this machine, without communication; None if not measured."""
    hours: float | None = None
    """The time of all steps, without validation and checkpoints."""
    notes: list[str] = []


def sample_rows(spec: TrainJobSpec, fitted: Fitted) -> tuple[Examples, int]:
    """Prepared training rows, as many as fit the limits, and the number of rows that they were made of."""
    DOING.begin("preparing rows", min(fitted.rows["train"], SAMPLE_ROWS), ROWS)
    tables, read, size = [], 0, 0
    for rows, labels in read_set(spec, fitted, "train"):
        tables.append(prepared(rows, labels, fitted.preprocessor))
        read += len(rows.table)
        size += tables[-1].nbytes
        if read >= SAMPLE_ROWS or size >= SAMPLE_BYTES:
            break
    return Examples.concat(tables), read


def steps_of(spec: TrainJobSpec, fitted: Fitted, examples: Examples, read: int) -> Steps:
    """The steps, from `examples`, which were made of `read` training rows."""
    scale = fitted.training_rows / read
    rows = fitted.training_rows if not fitted.preprocessor.input.packs else round(len(examples) * scale)
    has_tokens = spec.model.max_length is not None
    tokens = examples.lengths // fitted.preprocessor.input.values_of_token
    plan = StepPlan.of(spec.training, Shard(0, 1, spec.training.batch_size, 0).batches(rows))
    return Steps(
        rows=rows,
        tokens=round(int(tokens.sum()) * scale) if has_tokens else None,
        longest=int(tokens.max()) if has_tokens else None,
        per_epoch=plan.steps_per_epoch,
        total=plan.steps,
        is_exact=read == fitted.training_rows,
    )


def make_plan(job: TrainJob, found: CheckedData, capacity: int | None, threads: int | None = None) -> Plan:
    """The plan of a job with this data. `capacity` is the memory of a worker's GPU in bytes, if it is known. With
    `threads`, steps are measured, each worker with this many CPU threads. Raises UserError if the model cannot be
    built."""
    fitted, spec = found.fitted, found.spec
    plan = Plan(
        name=job.metadata.name,
        rows=found.rows,
        classes=fitted.preprocessor.target.sizes().get("classes") if fitted is not None else None,
        cut_share=fitted.profile.cut_share if fitted is not None and fitted.profile is not None else None,
        workers=spec.workers.count,
        capacity=capacity,
    )
    if fitted is None:
        note = "a function computes its steps and its memory itself: only its rows can be planned"
        return plan.model_copy(update={"notes": [note]})
    examples, read = sample_rows(spec, fitted)
    DOING.begin("computing the memory of a step")
    with local_model(spec, weights=False) as model:
        traced = Traced(spec, model, fitted.preprocessor, examples, _dtype(spec), capacity)
        steps = steps_of(spec, fitted, examples, read)
        update = {"steps": steps, "notes": list(_notes(spec, capacity)), **_memory(traced)}
    if threads is not None:
        DOING.begin("measuring steps")
        seconds = seconds_per_batch(traced, threads) * spec.training.gradient_accumulation
        update |= {"seconds_per_step": seconds, "hours": seconds * steps.total / 3600}
    return plan.model_copy(update=update)


def _dtype(spec: TrainJobSpec) -> torch.dtype:
    """The data type of the forward pass; of a GPU that is not here, `auto` is bfloat16."""
    precision = spec.training.precision
    if not spec.workers.gpus:
        return resolve_precision(precision, torch.device("cpu"))
    if precision == "auto" and not torch.cuda.is_available():
        return torch.bfloat16
    return resolve_precision(precision, torch.device("cuda"))


def _memory(traced: Traced) -> dict[str, Any]:
    """Fields of the plan."""
    rows = traced.rows_per_worker
    precision = next(name for name, dtype in PRECISIONS.items() if dtype == traced.dtype)
    known = {"rows_per_worker": rows, "precision": precision}
    try:
        memory = traced.memory(rows)
    except NotTraceable as error:
        return known | {"memory_unknown": str(error)}
    need = Need(**asdict(memory), total=memory.total)
    if traced.capacity is None:
        return known | {"memory": need}
    fits = how_it_fits(memory.total, traced.capacity)
    alternatives = list(alternatives_of(traced)) if fits != "yes" else []
    return known | {"memory": need, "fits": fits, "alternatives": alternatives}


def _notes(spec: TrainJobSpec, capacity: int | None) -> Iterator[str]:
    if spec.workers.gpus and capacity is None:
        yield "the GPUs' memory is unknown: --gpu-memory 80Gi shows whether a worker fits, as does --cluster"
    if spec.tuning is not None:
        yield "the plan is of one trial with the values of the TrainJob; trials with other values differ"
    if spec.training.early_stopping is not None:
        yield "early stopping may end the training sooner"
    if spec.training.compile:
        yield "compiled steps usually need less memory than planned here: the plan is for steps that are not compiled"
