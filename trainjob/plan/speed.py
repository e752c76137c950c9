"""The time of a batch, from a few real steps of one worker on this machine."""

import time
from collections.abc import Iterator
from itertools import cycle, islice

import torch

from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import InMemoryBatches, Shard
from trainjob.errors import UserError
from trainjob.models import build
from trainjob.plan.memory import Traced
from trainjob.precision import allow_tf32, resolve_precision
from trainjob.pretrained.remote_model import local_model
from trainjob.worker.devices import is_out_of_memory, out_of_memory
from trainjob.worker.placement import to_device_or_shard
from trainjob.worker.step import Step

WARM_UP = 3
MAX_BATCHES, MAX_SECONDS = 30, 20.0


def seconds_per_batch(traced: Traced, threads: int) -> float:
    """The mean time of a worker's share of a batch. Raises UserError if this machine lacks the worker's GPU."""
    spec = traced.spec
    if traced.on_gpu and not torch.cuda.is_available():
        raise UserError("--measure: the workers use GPUs, and PyTorch cannot use any GPU of this machine")
    device = torch.device("cuda" if traced.on_gpu else "cpu")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with local_model(spec, weights=True) as model:
            module = build(model, traced.preprocessor)
        if device.type == "cuda":
            allow_tf32(spec.training.precision)
        module.to(memory_format=torch.channels_last)
        called = to_device_or_shard(module, spec.training, device, on_ray=False)
        dtype = resolve_precision(spec.training.precision, device)
        if device.type == "cpu" and dtype != torch.float32:
            module.use_plain_attention()
        if spec.training.compile:
            called.compile()
        step = Step(spec, traced.preprocessor, module, called.train(), device, dtype)
        return _mean_time(step, _batches(traced))
    except Exception as error:
        if is_out_of_memory(error):
            raise out_of_memory(spec, error) from None
        raise
    finally:
        torch.set_num_threads(before)


def _batches(traced: Traced) -> Iterator[Batch]:
    """Rank 0's, as in the first epoch."""
    spec = traced.spec
    shard = Shard(0, spec.workers.count, spec.training.batch_size, spec.training.seed)
    batches = list(islice(InMemoryBatches(traced.examples, traced.preprocessor, shard).epoch(0), MAX_BATCHES))
    return cycle(batches)


def _mean_time(step: Step, batches: Iterator[Batch]) -> float:
    _run(step, islice(batches, WARM_UP), MAX_SECONDS / 4)
    since = time.perf_counter()
    done = _run(step, islice(batches, MAX_BATCHES), MAX_SECONDS)
    return (time.perf_counter() - since) / done


def _run(step: Step, batches: Iterator[Batch], most_seconds: float) -> int:
    """Trains on one batch or more, and returns how many."""
    since, done = time.perf_counter(), 0
    for batch in batches:
        step.backward(batch.to(step.device), torch.ones((), device=step.device))
        step.update()
        done += 1
        if time.perf_counter() - since > most_seconds:
            break
    if step.device.type == "cuda":
        torch.cuda.synchronize(step.device)
    return done
