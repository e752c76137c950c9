"""Compares training speed with sentence-transformers' trainer: pairs/s of the same network, batch and precision.

Both train the encoder of examples/search.yaml from the same weights, on pairs from examples/make_summaries.py, with
in-batch negatives, alternately. Only the time of the training loop counts, without scoring and checkpoints.
sentence-transformers tokenizes in that loop, trainjob before it.
sentence-transformers is installed into a temporary folder, unless --packages names one that has it; the rest that it
needs is in `make check`'s environment.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv
from uv import find_uv_bin

from trainjob.api import TrainJob
from trainjob.api.load import load_trainjob
from trainjob.data import fit
from trainjob.data.batches.prepare import read_set
from trainjob.driver.run import run
from trainjob.driver.worker_cpus import worker_threads
from trainjob.models import build, save_model

OVERRIDES = (
    *("spec.training.epochs=1", "spec.training.precision=float32", "spec.workers.count=1", "spec.baselines={}"),
    *("spec.dataset.loader=dataLoader", "spec.dataset.test=null"),
)
SENTENCE_TRANSFORMERS = "sentence-transformers==6.2.0"
EXAMPLE = Path(__file__).parent.parent / "examples" / "search.yaml"


def theirs(folder: Path, batch_size: int, learning_rate: float, threads: int) -> None:
    """Trains the model in the folder with sentence-transformers, and prints the seconds."""
    import torch
    from datasets import Dataset
    from sentence_transformers import (  # pyrefly: ignore[missing-import]
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss  # pyrefly: ignore[missing-import]

    torch.set_num_threads(threads)
    model: Any = SentenceTransformer(str(folder / "model"), device="cpu")
    rows = csv.read_csv(folder / "pairs.csv")
    trainer = SentenceTransformerTrainer(
        model,
        SentenceTransformerTrainingArguments(
            str(folder / "theirs"),
            per_device_train_batch_size=batch_size,
            num_train_epochs=1,
            learning_rate=learning_rate,
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict(rows.to_pydict()),
        loss=MultipleNegativesRankingLoss(model),
    )
    print(f"seconds {trainer.train().metrics['train_runtime']}")


def write_task(job: TrainJob, folder: Path) -> int:
    """Writes the untrained model and the training pairs into the folder, and returns the number of pairs."""
    fitted = fit(job.spec)
    save_model(build(job.spec.model, fitted.preprocessor), fitted.preprocessor, folder / "model")
    tables = [rows.table.select(["summary", "signature"]) for rows, _ in read_set(job.spec, fitted, "train")]
    csv.write_csv(pa.concat_tables(tables), folder / "pairs.csv")
    return fitted.rows["train"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", help="a folder with sentence-transformers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--theirs", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    job = load_trainjob(EXAMPLE, OVERRIDES)
    optimizer, batch_size = job.spec.training.optimizer.adam_w, job.spec.training.batch_size
    assert optimizer is not None
    assert batch_size is not None
    if arguments.theirs:
        sys.path.append(arguments.packages)
        theirs(Path(arguments.theirs), batch_size, optimizer.learning_rate or 1e-3, worker_threads(job.spec))
        return
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as temporary:
        packages = arguments.packages or f"{temporary}/packages"
        if arguments.packages is None:
            install = [find_uv_bin(), "pip", "install", "--quiet", "--python", sys.executable, "--no-deps"]
            subprocess.run([*install, "--target", packages, SENTENCE_TRANSFORMERS], check=True)
        pairs = write_task(job, Path(temporary))
        for _ in range(arguments.rounds):
            command = [sys.executable, __file__, "--packages", packages, "--theirs", temporary]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            [other] = [float(line.split()[1]) for line in output.splitlines() if line.startswith("seconds ")]
            own = run(job, source=EXAMPLE.parent, started=time.time(), fresh=True).summary.seconds["training"]
            ratios.append(other / own)
            print(f"{pairs / own:,.0f} pairs/s; sentence-transformers {pairs / other:,.0f}; {ratios[-1]:.2f} times")
    print(f"median {statistics.median(ratios):.2f} times ({min(ratios):.2f}-{max(ratios):.2f})")


if __name__ == "__main__":
    main()
