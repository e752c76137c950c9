"""Compares training speed on a GPU with a bare loop and Hugging Face's Trainer; run by gpu.py.

All sides train the same network from the same weights on the same full-length rows of random tokens, in the same
precision with the same optimizer, alternately. The time between steps counts, without the first steps.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu_cases import BATCHES, LEARNING_RATE, Case, Tokens, Trained, trainer_of
from gpu_checks import NotMeasured

from trainjob.data.batches.loaders import InMemoryBatches, Shard, ahead
from trainjob.precision import allow_tf32
from trainjob.worker.loop import DueAfterStep, Trainer
from trainjob.worker.optim import build_optimizer

FLOPS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "B200": 2250e12}
"""The vendor's peak dense bfloat16 operations per second, by a word in the GPU's name."""


class Clock:
    """The time between the last warm-up step and the last step."""

    def __init__(self, case: Case) -> None:
        self.case, self.times = case, dict[int, float]()

    def step(self, number: int) -> None:
        if number in (self.case.size.warm_up, self.case.size.steps):
            if self.case.device.type == "cuda":
                torch.cuda.synchronize()
            self.times[number] = time.perf_counter()

    @property
    def tokens_a_second(self) -> float:
        size = self.case.size
        return (
            (size.steps - size.warm_up) * size.rows * size.length / (self.times[size.steps] - self.times[size.warm_up])
        )


def bare(case: Case) -> float:
    """A hand-written loop: only the steps, with batches prefetched by a thread."""
    clock, module = Clock(case), case.module()
    tokens = case.tokens
    objective = tokens.target.objective(case.spec, module)
    if case.spec.training.compile:
        module.compile()
    optimizer = build_optimizer(case.spec.training.optimizer, module.parameters())
    batches = InMemoryBatches(tokens.examples(), tokens, Shard(0, 1, case.size.rows, 0))  # pyrefly: ignore[bad-argument-type]
    module.train()
    for number, batch in enumerate(ahead(batches.epoch(0), case.device), start=1):
        moved = batch.to(case.device)
        with torch.autocast(case.device.type, torch.bfloat16):
            answers = module(**moved.inputs).float()
        (objective.losses(answers, moved).sum() / batch.weight).backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        clock.step(number)
        if number == case.size.steps:
            break
    return clock.tokens_a_second


def trainjobs(case: Case) -> float:
    """trainjob's own loop, with metrics and progress."""
    clock = Clock(case)

    class Timed(Trainer):
        def _perform(self, due: DueAfterStep, learning_rate: float) -> None:
            super()._perform(due, learning_rate)
            clock.step(self.state.step)

    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(case, Path(folder), Timed)
        try:
            trainer.train()
        except Trained:
            return clock.tokens_a_second
    raise AssertionError("the epoch ended without scores")


def hugging_face(case: Case) -> float:
    """Hugging Face's Trainer, configured as its documentation recommends for one GPU. It gets a language model's rows
    without document boundaries, packed as in `run_clm.py`, so it needs no mask."""
    from torch.utils.data import Dataset
    from transformers.trainer import Trainer as HuggingFaceTrainer
    from transformers.trainer_callback import PrinterCallback, TrainerCallback
    from transformers.training_args import TrainingArguments

    clock, examples = Clock(case), Tokens(case.size, packs=False).examples()
    classes = torch.tensor(examples.labels)
    rows = torch.from_numpy(examples.values.reshape(-1, case.size.length)).long()

    class Rows(Dataset[Any]):
        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, index: int) -> dict[str, Any]:
            labels = rows[index] if case.is_language else classes[index]
            return {"input_ids": rows[index], "labels": labels}

    class Ticks(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            clock.step(state.global_step)

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=case.size.rows,
            max_steps=case.size.steps,
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="constant",
            bf16=True,
            tf32=True if case.device.type == "cuda" else None,
            use_cpu=case.device.type == "cpu",
            torch_compile=case.spec.training.compile,
            dataloader_num_workers=2,
            dataloader_persistent_workers=True,
            logging_steps=BATCHES // 20,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = HuggingFaceTrainer(case.network(), arguments, train_dataset=Rows(), callbacks=[Ticks()])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return clock.tokens_a_second


SIDES: dict[str, Callable[[Case], float]] = {
    "bare": bare,
    "Hugging Face": hugging_face,
    "trainjob": trainjobs,
}


def measure(case: Case, rounds: int) -> dict[str, float | None]:
    """Median tokens/s of each side, their ratios, and the fraction of the GPU's peak."""
    if case.device.type == "cuda":
        allow_tf32("bf16")
    found: dict[str, list[float]] = {name: [] for name in SIDES}
    for _ in range(rounds):
        for name, side in SIDES.items():
            found[name].append(side(case))
            torch.compiler.reset()
            if case.device.type == "cuda":
                torch.cuda.empty_cache()
    medians = {name: statistics.median(values) for name, values in found.items()}
    most = peak(case.device)
    return medians | {
        "beside Hugging Face": medians["trainjob"] / medians["Hugging Face"],
        "beside the bare loop": medians["trainjob"] / medians["bare"],
        "MFU": medians["trainjob"] * case.flops_a_token / most if most is not None else None,
    }


def peak(device: torch.device) -> float | None:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return next((flops for word, flops in FLOPS.items() if word in name), None)


def checkpoint_seconds(case: Case) -> float:
    """Seconds that training waits for a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(case, Path(folder))
        try:
            trainer.train()
        except Trained:
            since = time.perf_counter()
            trainer._save({trainer.spec.checkpoints.metric: 0.0}, None)  # noqa: SLF001
            seconds = time.perf_counter() - since
            trainer.checkpointer.wait()
            return seconds
    raise NotMeasured("there was no end of the epoch")
