"""Decides whether a step fits into a GPU's memory, and which settings would."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from trainjob.api import Training
from trainjob.errors import UserError
from trainjob.plan.memory import NotTraceable, Traced
from trainjob.schema.base import StrictModel

ERROR = 0.2
"""The relative error that planned memory may have."""
RESERVED = 2**30
"""Bytes of a GPU that tensors cannot use: CUDA's context and NCCL's buffers."""

Fit = Literal["yes", "barely", "no"]
"""barely: it fits only if the plan's error is less than ERROR."""


class Alternative(StrictModel):
    """Settings that fit the memory."""

    settings: dict[str, int | bool | str]
    """Fields of the TrainJob, with their values."""
    total: int
    """Bytes of a worker at the peak."""


def how_it_fits(needed: int, capacity: int) -> Fit:
    if needed + RESERVED > capacity:
        return "no"
    return "yes" if needed * (1 + ERROR) + RESERVED <= capacity else "barely"


def alternatives_of(traced: Traced) -> Iterator[Alternative]:
    """Settings of training that fit even with ERROR, the smallest changes first; further settings only if they allow
    more rows at once."""
    training, most_rows = traced.spec.training, 0
    for settings in _settings(traced):
        changed = traced.spec.model_copy(update={"training": training.model_copy(update=settings)})
        other = replace(traced, spec=changed)
        rows = _most_rows(other)
        if rows is None or rows <= most_rows:
            continue
        most_rows = rows
        shown: dict[str, Any] = {f"training.{Training.in_yaml(name)}": value for name, value in settings.items()}
        if rows < traced.rows_per_worker:
            shown["training.batchSize"] = rows * traced.spec.workers.count
            shown["training.gradientAccumulation"] = training.gradient_accumulation * traced.rows_per_worker // rows
        yield Alternative(settings=shown, total=other.memory(rows).total)


def _settings(traced: Traced) -> Iterator[dict[str, Any]]:
    yield {}
    training = traced.spec.training
    if "sharding" not in traced.spec.model.facts.abilities:
        return
    checkpointing = {} if training.activation_checkpointing else {"activation_checkpointing": True}
    can_shard = traced.spec.workers.count > 1 and training.sharding == "none" and not training.compile
    if checkpointing:
        yield checkpointing
    if can_shard:
        yield {"sharding": "full"}
        if checkpointing:
            yield {"sharding": "full"} | checkpointing


def _most_rows(traced: Traced) -> int | None:
    """The most rows of a worker that fit even with ERROR, a divisor of the spec's. Assumes that activations grow
    linearly with the rows."""
    assert traced.capacity is not None
    wanted = traced.rows_per_worker
    try:
        most, least = (traced.memory(rows).total for rows in (wanted, 1))
    except (NotTraceable, UserError):
        return None
    for parts in range(1, wanted + 1):
        rows = wanted // parts
        if wanted % parts == 0:
            expected = least + (most - least) * (rows - 1) / max(wanted - 1, 1)
            if how_it_fits(round(expected), traced.capacity) == "yes":
                return rows
    return None
