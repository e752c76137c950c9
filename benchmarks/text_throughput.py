"""Compares training rows/s and validation F1 on the docstrings with a plain Ray Train loop.

The encoder is the TrainJob's default with two layers, and no text is truncated. (The example has one layer, so that the
optimizer takes a large part of its step.) The plain loop has the same model, data, split, optimizer and schedule in
float32, pads every batch to the longest text of the set, and makes one pass of `iter_torch_batches` per epoch. Both
alternate, once per seed.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from trainjob.api import TrainJob
from trainjob.api.load import load_trainjob
from trainjob.data import Examples, Fitted, fit, prepare_datasets
from trainjob.driver.run import run
from trainjob.driver.worker_cpus import worker_threads
from trainjob.interrupts import in_thread
from trainjob.kinds.inputs.text import TextInput
from trainjob.launch.ray_cluster import start_ray
from trainjob.launch.ray_train import run_on_ray
from trainjob.storage import Folder

EXAMPLE = Path(__file__).parent.parent / "examples" / "docstrings.yaml"


def plain_loop(config: dict[str, Any]) -> dict[str, float]:
    """A loop written from Ray Train's documentation."""
    import pyarrow as pa  # here, so that it travels to the workers with this function
    import ray.train
    import torch
    from ray.data.collate_fn import ArrowBatchCollateFn
    from ray.train.torch import prepare_model
    from torch.optim.lr_scheduler import LambdaLR

    from trainjob.models import build
    from trainjob.worker.optim import build_optimizer, build_scheduler

    job: TrainJob = config["job"]
    fitted: Fitted = config["fitted"]
    longest: int = config["longest"]
    preprocessor = fitted.preprocessor.input
    assert isinstance(preprocessor, TextInput)
    training, workers = job.spec.training, job.spec.workers.count
    torch.set_num_threads(config["threads"])
    torch.manual_seed(training.seed)
    model = prepare_model(build(job.spec.model, fitted.preprocessor))
    batch_size = training.batch_size // workers
    steps = training.epochs * -(-(fitted.rows["train"] // workers) // batch_size)
    optimizer = build_optimizer(training.optimizer, model.parameters())
    scheduler = build_scheduler(training.scheduler, optimizer, steps)

    class Pad(ArrowBatchCollateFn):
        def __call__(self, batch: pa.Table) -> dict[str, torch.Tensor]:
            examples = Examples.from_table(batch)
            tokens = np.full((len(examples), longest), preprocessor.pad_token_id, np.int64)
            mask = np.arange(longest) < examples.lengths[:, None]
            tokens[mask] = examples.values
            return {
                "input_ids": torch.from_numpy(tokens),
                "attention_mask": torch.from_numpy(mask.astype(np.int64)),
                "labels": torch.from_numpy(examples.labels),
            }

    def batches(name: str, **options: Any) -> Iterable[Any]:
        shard: Any = ray.train.get_dataset_shard(name)
        return shard.iter_torch_batches(batch_size=batch_size, collate_fn=Pad(), **options)

    rows, seconds = 0, 0.0
    for epoch in range(training.epochs):
        model.train()
        since = time.perf_counter()
        for batch in batches("train", local_shuffle_buffer_size=10_000, local_shuffle_seed=epoch):
            labels = batch.pop("labels")
            loss = torch.nn.functional.cross_entropy(model(**batch), labels)
            loss.backward()
            if training.gradient_clipping is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), training.gradient_clipping)
            optimizer.step()
            optimizer.zero_grad()
            if isinstance(scheduler, LambdaLR):
                scheduler.step()
            rows += len(labels) * workers
        seconds += time.perf_counter() - since
    model.eval()
    truth, predicted = [], []
    with torch.inference_mode():
        for batch in batches("validation"):
            truth += batch.pop("labels").tolist()
            predicted += model(**batch).argmax(dim=1).tolist()
    from sklearn.metrics import f1_score

    return {"rows_per_second": rows / seconds, "f1": float(f1_score(truth, predicted, average="macro"))}


def plain(job: TrainJob, folder: Path) -> dict[str, float]:
    import ray

    threads = worker_threads(job.spec)
    start_ray(job.spec, threads)
    fitted = fit(job.spec)
    datasets = prepare_datasets(job.spec, fitted)
    longest = max(int(Examples.concat(_tables(dataset)).lengths.max()) for dataset in datasets.values())
    config = {"job": job, "fitted": fitted, "threads": threads, "longest": longest}
    plain_run = Folder(str(folder / "plain"))
    work = partial(plain_loop, config)
    result = in_thread(partial(run_on_ray, work, job.spec, plain_run, threads, datasets)).result()
    ray.shutdown()
    return cast("dict[str, float]", result.return_value)  # pyrefly: ignore[missing-attribute]


def _tables(dataset: Any) -> list[Any]:
    import ray

    return ray.get(dataset.to_arrow_refs())


def ours(job: TrainJob) -> dict[str, float]:
    import json

    finished = run(job, source=EXAMPLE.parent, started=time.time(), fresh=True)
    import ray  # after the run, which sets variables that Ray reads when it is imported

    ray.shutdown()
    assert finished.summary.samples_per_second is not None
    last = json.loads(finished.run.read("metrics.jsonl").splitlines()[-1])
    return {"rows_per_second": finished.summary.samples_per_second, "f1": last["validation_f1"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print("| seed | plain rows/s | trainjob rows/s | ratio | plain F1 | trainjob F1 |\n|---|---|---|---|---|---|")
    ratios, differences = [], []
    with tempfile.TemporaryDirectory() as temporary:
        for seed in range(arguments.seeds):
            job = load_trainjob(
                EXAMPLE,
                [
                    f"spec.storage={{uri: {temporary}}}",
                    f"spec.training.epochs={arguments.epochs}",
                    f"spec.training.seed={seed}",
                    "spec.model.textClassifier.encoder={}",
                    "spec.model.textClassifier.maxLength=256",
                    "spec.workers.count=2",
                    "spec.dataset.loader=rayData",
                    "spec.baselines={}",
                ],
            )
            ours_, plain_ = ours(job), plain(job, Path(temporary))
            ratios.append(ours_["rows_per_second"] / plain_["rows_per_second"])
            differences.append(ours_["f1"] - plain_["f1"])
            print(
                f"| {seed} | {plain_['rows_per_second']:.0f} | {ours_['rows_per_second']:.0f} | {ratios[-1]:.2f} "
                f"| {plain_['f1']:.4f} | {ours_['f1']:.4f} |",
                flush=True,
            )
    print(f"\nratio: median {statistics.median(ratios):.2f}; F1: mean difference {statistics.mean(differences):+.4f}")


if __name__ == "__main__":
    main()
