"""Compares training rows/s of the whole trainjob loop on Ray with a bare DistributedDataParallel loop under torchrun.

Both train the docstrings' model on the same rows in the same batches, alternately. The bare loop has no metrics, no
checkpoints and no progress. Its memory allocation is configured like that of trainjob's workers.
"""

import argparse
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trainjob.api import TrainJob
from trainjob.api.load import load_trainjob
from trainjob.data import fit, prepare_examples
from trainjob.driver.run import run
from trainjob.driver.worker_cpus import worker_threads
from trainjob.launch.ray_cluster import set_environment

EXAMPLE = Path(__file__).parent.parent / "examples" / "docstrings.yaml"


def bare(task: str) -> None:
    """One rank of the bare loop; rank 0 prints the rows/s over all ranks."""
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim.lr_scheduler import LambdaLR

    from trainjob.data.batches.loaders import BucketSampler, Shard, collate
    from trainjob.models import build
    from trainjob.precision import resolve_precision
    from trainjob.worker.optim import build_optimizer, build_scheduler

    job, fitted, examples = pickle.loads(Path(task).read_bytes())
    distributed.init_process_group("gloo")
    rank, workers = distributed.get_rank(), distributed.get_world_size()
    torch.set_num_threads(worker_threads(job.spec))
    training, rows = job.spec.training, examples["train"]
    torch.manual_seed(training.seed)
    model = DistributedDataParallel(build(job.spec.model, fitted.preprocessor))
    optimizer = build_optimizer(training.optimizer, model.parameters())
    shard = Shard(rank, workers, training.batch_size, training.seed)
    scheduler = build_scheduler(training.scheduler, optimizer, training.epochs * shard.batches(len(rows)))
    dtype = resolve_precision(training.precision, torch.device("cpu"))
    sampler = BucketSampler(rows.lengths, shard)
    since = time.perf_counter()
    for epoch in range(training.epochs):
        sampler.epoch = epoch
        for indices in sampler:
            batch = collate(fitted.preprocessor, rows.take(indices))
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                logits = model(**batch.inputs)
            torch.nn.functional.cross_entropy(logits.float(), batch.labels).backward()
            if training.gradient_clipping is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), training.gradient_clipping)
            optimizer.step()
            optimizer.zero_grad()
            if isinstance(scheduler, LambdaLR):
                scheduler.step()
    if rank == 0:
        print(len(rows) * training.epochs / (time.perf_counter() - since))
    distributed.destroy_process_group()


def under_torchrun(job: TrainJob, folder: Path) -> float:
    fitted = fit(job.spec)
    task = folder / "task.pickle"
    task.write_bytes(pickle.dumps((job, fitted, prepare_examples(job.spec, fitted))))
    torchrun = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={job.spec.workers.count}"]
    environment = os.environ | {"OMP_NUM_THREADS": str(worker_threads(job.spec))}
    done = subprocess.run(
        [*torchrun, __file__, "--bare", str(task)], check=True, capture_output=True, text=True, env=environment
    )
    return float(done.stdout)


def on_ray(job: TrainJob) -> float:
    import ray

    finished = run(job, source=EXAMPLE.parent, started=time.time(), fresh=True)
    ray.shutdown()
    assert finished.summary.samples_per_second is not None
    return finished.summary.samples_per_second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bare", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.bare:
        bare(arguments.bare)
        return
    print("| round | torchrun rows/s | trainjob rows/s | ratio |\n|---|---|---|---|")
    ratios = []
    with tempfile.TemporaryDirectory() as temporary:
        overrides = [
            f"spec.storage={{uri: {temporary}}}",
            f"spec.training.epochs={arguments.epochs}",
            "spec.workers.count=2",
            "spec.dataset.loader=rayData",
            "spec.baselines={}",
        ]
        job = load_trainjob(EXAMPLE, overrides)
        set_environment(job.spec)
        for number in range(arguments.rounds):
            torchrun, ray = under_torchrun(job, Path(temporary)), on_ray(job)
            ratios.append(ray / torchrun)
            print(f"| {number} | {torchrun:.0f} | {ray:.0f} | {ratios[-1]:.3f} |", flush=True)
    print(f"\nratio: median {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
