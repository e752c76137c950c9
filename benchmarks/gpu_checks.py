"""Correctness checks that need a GPU; run by gpu.py."""

import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from trainjob.api import TrainJobSpec
from trainjob.data import Examples, Preprocessor
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import Shard, ahead
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.targets.one_class import OneClass
from trainjob.models import build, load_model, save_model
from trainjob.precision import allow_tf32, resolve_precision
from trainjob.progress.reporter import Reporter
from trainjob.runs.checkpoints import SavedCheckpoints
from trainjob.runs.files import ATTEMPTS
from trainjob.storage import Folder
from trainjob.worker.devices import check_kernels, is_out_of_memory, out_of_memory
from trainjob.worker.loop import Trainer, TrainerInputs
from trainjob.worker.random_states import seed
from trainjob.worker.rank_data import rows_in_memory

SIDE, CLASSES, ROWS, BATCH = 32, ["circle", "cross", "square"], 960, 96
WARM_UP_STEPS = 3
TOLERANCE = 2e-2
"""Tolerance of float32 logits on a GPU, with TF32, compared with a CPU's."""


class NotMeasured(Exception):
    """The reason why a figure could not be measured."""


@dataclass(frozen=True)
class Bench:
    """The environment of the checks."""

    device: torch.device
    folder: Path

    def trainer(self, name: str, precision: str = "auto", epochs: int = 2) -> Trainer:
        """A small CNN on images of noise that are brighter in each class."""
        chance = np.random.default_rng(0)
        labels = np.arange(ROWS) % len(CLASSES)
        pixels = chance.integers(0, 120, (ROWS, SIDE * SIDE)) + 60 * labels[:, None]
        examples = Examples(pixels.astype(np.uint8).reshape(-1), np.arange(ROWS + 1) * SIDE * SIDE, labels)
        counts = np.bincount(labels).tolist()
        images = ImageInput(SIDE, SIDE, 1, [0.4], [0.2], resize=False)
        preprocessor = Preprocessor("imageClassifier", images, OneClass(CLASSES, counts))
        spec = TrainJobSpec.model_validate(
            {
                "model": {"imageClassifier": {"cnn": {}, "classWeights": {"balanced": {}}}},
                "dataset": {"train": {"uri": "noise"}},
                "training": {"epochs": epochs, "batchSize": BATCH, "precision": precision, "gradientClipping": 1.0},
            }
        )
        run = Folder(str(self.folder / name))
        run.write(ATTEMPTS, b"{}")
        seed(spec.training.seed)
        module = build(spec.model, preprocessor)
        if self.device.type == "cuda":
            allow_tf32(precision)
            module.to(memory_format=torch.channels_last)
        module.to(self.device)
        sets = {"train": examples, "validation": examples}
        return Trainer(
            TrainerInputs(
                spec=spec,
                preprocessor=preprocessor,
                module=module,
                model=module,
                device=self.device,
                data=rows_in_memory(sets, preprocessor, Shard(0, 1, BATCH, spec.training.seed)),
                run=run,
                scratch=Path(tempfile.mkdtemp(dir=self.folder)),
                reporter=Reporter(None, SavedCheckpoints(run, spec.checkpoints), epochs),
            )
        )

    def needs_gpu(self) -> None:
        if self.device.type != "cuda":
            raise NotMeasured("needs a GPU")


def kernels(bench: Bench) -> str:
    """PyTorch supports this GPU, and a precision is chosen for it."""
    bench.needs_gpu()
    name, capability = torch.cuda.get_device_name(), torch.cuda.get_device_capability()
    check_kernels(name, capability)
    return f"{name}, sm_{capability[0]}{capability[1]}; auto: {resolve_precision('auto', bench.device)}"


def memory(bench: Bench) -> str:
    """The error about too little memory says which settings to lower."""
    bench.needs_gpu()
    error = None
    try:
        torch.empty(2**50, device=bench.device)
    except RuntimeError as raised:
        error = raised
    assert error is not None, "4 PiB were given"
    assert is_out_of_memory(error), error
    said = str(out_of_memory(bench.trainer("memory").spec, error))
    assert "lower spec.training.batchSize" in said, said
    return said


def syncs(bench: Bench) -> str:
    """The host never waits for the GPU in the steps of an image classifier."""
    bench.needs_gpu()
    return syncs_of(bench.trainer("syncs", epochs=20))


def syncs_of(trainer: Trainer) -> str:
    """The host never waits for the GPU in the trainer's steps; code that waits is reported with its line."""
    trainer.plan = replace(trainer.plan, log_every=10**9)
    batches = ahead(trainer.batches.epoch(0), trainer.device)
    for batch in islice(batches, WARM_UP_STEPS):
        take_step(trainer, batch)
    found = list[str]()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        for batch in islice(batches, 4):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                take_step(trainer, batch)
            found += [
                f"{Path(each.filename).name}:{each.lineno}" for each in caught if "synchroniz" in str(each.message)
            ]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert not found, f"{len(found)} in 4 steps: {', '.join(sorted(set(found)))}"
    return "0 in 4 steps"


def take_step(trainer: Trainer, batch: Batch) -> None:
    trainer._train_group([batch])  # noqa: SLF001


def pinned(bench: Bench) -> str:
    """Batches arrive in order, in pinned memory."""
    trainer = bench.trainer("pinned")
    plain = [batch.labels for batch in trainer.batches.epoch(1)]
    made = list(ahead(trainer.batches.epoch(1), bench.device))
    assert all(torch.equal(one, other.labels) for one, other in zip(plain, made, strict=True))
    bench.needs_gpu()
    assert all(batch.labels.is_pinned() and batch.inputs["pixel_values"].is_pinned() for batch in made)
    return f"{len(made)} batches"


def precision(bench: Bench, name: str) -> str:
    """The loss falls, and the saved model gives the same output on a CPU."""
    trainer = bench.trainer(name, name)
    since = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - since
    scores = trainer.scorer.score(trainer.module, "validation").as_metrics("validation")
    assert scores["validation_accuracy"] > 0.9, scores
    save_model(trainer.module, trainer.checkpointer.preprocessor, bench.folder / name / "saved")
    loaded, _ = load_model(bench.folder / name / "saved")
    batch = next(iter(trainer.batches.epoch(0)))
    trainer.module.eval()
    with torch.inference_mode():
        here = trainer.module(**batch.to(bench.device).inputs).cpu()
        difference = (here - loaded(**batch.inputs)).abs().max().item()
    assert difference < TOLERANCE * max(1.0, here.abs().max().item()), difference
    return f"accuracy {scores['validation_accuracy']:.3f}, {seconds:.1f} s; logits on a CPU differ by {difference:.1e}"


def resume(bench: Bench) -> str:
    """A run resumed after its first epoch ends like an uninterrupted one, including dropout."""
    whole, cut, again = (bench.trainer(name, "float32") for name in ("whole", "cut", "cut"))
    seed(1)
    whole.train()
    cut.spec = cut.spec.model_copy(update={"training": cut.spec.training.model_copy(update={"epochs": 1})})
    seed(1)
    cut.train()
    [name] = [name for name, _ in again.store.ranked()]
    again.resume(name)
    again.history.resume(again.state.step)
    again.train()
    pairs = zip(whole.module.state_dict().values(), again.module.state_dict().values(), strict=True)
    difference = max((one - other).abs().max().item() for one, other in pairs)
    assert difference < 1e-3, difference
    return "the same to the bit" if difference == 0 else f"weights differ by {difference:.1e}"


CHECKS: dict[str, Callable[[Bench], str]] = {
    "kernels": kernels,
    "memory": memory,
    "syncs": syncs,
    "pinned": pinned,
    "resume": resume,
    **{name: lambda bench, name=name: precision(bench, name) for name in ("float32", "bf16", "fp16")},
}
