"""Checks of attention and sharding, which a GPU computes differently from a CPU; run by gpu.py."""

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from gpu_cases import BERT, LLAMA, Case, Size, trainer_of, unpack
from gpu_checks import Bench, take_step
from torch import Tensor, distributed

from trainjob.data.batches.batch import Batch
from trainjob.kinds.causal_lm.packing import START
from trainjob.models.gpu_attention import MAX_CHANNELS
from trainjob.worker.loop import Trainer
from trainjob.worker.placement import BOTH_BACKENDS

BF16_TOLERANCE = 0.05
"""Tolerance of bfloat16 results, relative to the largest value."""
LOSS_TOLERANCE = 0.02
LENGTH = 256
STEPS = 6


def packed(bench: Bench) -> str:
    """Packed documents give the same results in bfloat16 and float32, forward and backward, with few key heads and a
    row that ends in padding: with the kernel, and with a mask for head sizes that the kernel does not support."""
    bench.needs_gpu()
    size = LLAMA.tiny()
    odd = replace(size, network=size.network | {"head_dim": MAX_CHANNELS + 8})
    return "; ".join(f"{name} {_packed(bench, each)}" for name, each in (("kernel", size), ("mask", odd)))


def _packed(bench: Bench, size: Size) -> str:
    codes = np.random.default_rng(0).integers(5, size.network["vocab_size"], (2, LENGTH), dtype=np.int32)
    for row, starts in zip(codes, ([0, 3, 100], [0, 200, 230]), strict=True):
        row[starts] |= START
    codes[1, 230:] = -1
    arrays = unpack(codes)
    inputs = {name: torch.from_numpy(array).to(bench.device) for name, array in arrays.items() if name != "labels"}
    passes = partial(_passes, Case("llama", size, bench.device), torch.from_numpy(codes >= 0).to(bench.device))
    exact = passes(torch.float32, inputs)
    found = passes(torch.bfloat16, inputs)
    differences = [_difference(one, other) for one, other in zip(found, exact, strict=True)]
    assert max(differences) < BF16_TOLERANCE, differences
    first_alone = inputs | {"starts": inputs["starts"][:, :1]}
    assert _difference(passes(torch.bfloat16, first_alone)[0], exact[0]) > BF16_TOLERANCE, "starts are not looked at"
    return f"logits and gradients differ from float32's by {differences[0]:.1e} and {differences[1]:.1e} of the largest"


def _passes(case: Case, counts: Tensor, dtype: torch.dtype, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """A language model's logits at learned tokens, and the gradient of its embeddings."""
    model = case.module()
    assert model.rounds
    model.rounds = dtype != torch.float32
    with torch.autocast(case.device.type, dtype, enabled=dtype != torch.float32):
        answers = model(**inputs).float()[counts]
    answers.square().sum().backward()
    return answers.detach(), model.network.get_input_embeddings().weight.grad


def masked(bench: Bench) -> str:
    """Padding does not change results, and a batch without padding needs no mask."""
    bench.needs_gpu()
    case = Case("bert", BERT.tiny(), bench.device)
    model = case.module().eval()
    assert model.rounds
    tokens = torch.randint(5, BERT.tiny().network["vocab_size"], (2, 32), device=bench.device)
    mask = torch.ones_like(tokens)
    mask[1, 20:] = 0
    whole = Batch({"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}, tokens[:, 0])
    with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16):
        alone, beside = model(tokens[1:, :20]), model(tokens, mask)[1:]
        bare, full = model(**whole.without_full_mask().inputs), model(**whole.inputs)
    differences = _difference(beside, alone), _difference(bare, full)
    assert max(differences) < BF16_TOLERANCE, differences
    return f"logits differ by {differences[0]:.1e} and {differences[1]:.1e} of the largest"


def generated(bench: Bench) -> str:
    """A language model generates the same text as on a CPU, from a batch with a padded text."""
    bench.needs_gpu()
    size = LLAMA.tiny()
    tokens = torch.randint(5, size.network["vocab_size"], (2, 32))
    mask = torch.ones_like(tokens)
    mask[1, :20] = 0
    found = list[Tensor]()
    for device in (bench.device, torch.device("cpu")):
        network = Case("llama", size, torch.device("cpu")).module().eval().network.to(device)
        options = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
        found.append(network.generate(tokens.to(device), attention_mask=mask.to(device), **options).cpu())
    assert torch.equal(*found), found
    return f"{found[0][:, 32:].numel()} tokens"


def sharded(bench: Bench) -> str:
    """A model sharded over one GPU learns the same as a replicated one, with and without CPU offload, and can be
    resumed."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
    distributed.init_process_group(BOTH_BACKENDS if bench.device.type == "cuda" else "gloo", rank=0, world_size=1)
    try:
        found = {name: _losses(bench, name, **options) for name, options in SHARDINGS.items()}
    finally:
        distributed.destroy_process_group()
    for losses in found.values():
        torch.testing.assert_close(losses, found["whole"], rtol=LOSS_TOLERANCE, atol=0)
    return "the last losses: " + "; ".join(f"{name} {losses[-1]:.1f}" for name, losses in found.items())


SHARDINGS: dict[str, dict[str, Any]] = {
    "whole": {},
    "sharded": {"sharding": "full"},
    "offloaded": {"sharding": "full", "cpuOffload": True},
    "activations computed anew": {"sharding": "full", "activationCheckpointing": True},
}


def _losses(bench: Bench, name: str, **training: Any) -> Tensor:
    """The losses of a few steps, and of one more by another Trainer from a checkpoint."""
    case, losses = Case("llama", LLAMA.tiny(), bench.device, training), list[Tensor]()
    first, second = (trainer_of(case, bench.folder / f"sharded, {name}") for _ in range(2))
    batches = list(first.batches.epoch(0))
    for batch in batches[:STEPS]:
        losses.append(_loss_of_step(first, batch))
    first._save({first.spec.checkpoints.metric: 0.0}, None)  # noqa: SLF001
    first.checkpointer.wait()
    [checkpoint] = [name for name, _ in first.store.ranked()]
    second.resume(checkpoint)
    losses += [_loss_of_step(trainer, batches[STEPS]) for trainer in (first, second)]
    torch.testing.assert_close(losses[-1], losses[-2], rtol=1e-3, atol=0)
    return torch.stack(losses)


def _loss_of_step(trainer: Trainer, batch: Batch) -> Tensor:
    before = trainer.state.loss_sum
    trainer.plan = replace(trainer.plan, log_every=1)
    take_step(trainer, batch)
    return torch.tensor(trainer.state.loss_sum - before)


def _difference(one: Tensor, other: Tensor) -> float:
    return ((one.float() - other.float()).abs().max() / other.float().abs().max()).item()


MODELS: dict[str, Callable[[Bench], str]] = {each.__name__: each for each in (packed, masked, generated, sharded)}
