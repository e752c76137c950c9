"""Compares training speed with Hugging Face's Trainer: a text classifier's rows/s, a language model's tokens/s.

Both train the same network from scratch on the same tokens of the docstrings, in the same precision, alternately, in
two processes of one thread each. The Trainer is configured as its documentation recommends for texts of varying length:
it groups them (`train_sampling_strategy="group_by_length"`) and pads each batch to its longest. trainjob packs a
language model's texts. The Trainer gets them one by one, padded by `DataCollatorForLanguageModeling`, with as many
texts per step as have the tokens of trainjob's step. Only the time of the steps counts, without scoring and
checkpoints, and only learned tokens.
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
from typing import Any

import numpy as np

from trainjob.api import TrainJob
from trainjob.api.load import load_trainjob
from trainjob.data import Examples, fit, prepare_examples
from trainjob.driver.run import run
from trainjob.driver.worker_cpus import worker_threads
from trainjob.kinds.causal_lm.packing import GIVEN, START

EXAMPLE = Path(__file__).parent.parent / "examples" / "docstrings.yaml"
OVERRIDES = {
    "text": ["spec.model.textClassifier.encoder={}", "spec.model.textClassifier.maxLength=256"],
    "causal": [
        "spec.model={causalLM: {decoder: {hiddenSize: 256, heads: 4, layers: 2, vocabularySize: 8192}}}",
        "spec.model.causalLM.maxLength=256",
        "spec.dataset.label=null",
        "spec.dataset.test=null",
        "spec.checkpoints={}",
        "spec.training.batchSize=16",
    ],
}
UNITS = {"text": "rows", "causal": "tokens"}
ENVIRONMENT = dict(os.environ)
"""The environment without trainjob's settings for its workers."""


def texts_of(examples: Examples) -> list[list[int]]:
    """The texts of packed rows, as lists of tokens."""
    starts = np.flatnonzero(examples.values >= START)
    return [part.tolist() for part in np.split(examples.values & (GIVEN - 1), starts)[1:]]


def hugging_face(task: str) -> None:
    """One rank of the Trainer; rank 0 prints the seconds of training."""
    import torch
    from torch.utils.data import Dataset
    from transformers.data.data_collator import DataCollatorForLanguageModeling, DataCollatorWithPadding
    from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast
    from transformers.trainer import Trainer
    from transformers.training_args import TrainingArguments

    from trainjob.models import build
    from trainjob.precision import resolve_precision

    job, fitted, rows, per_worker, folder = pickle.loads(Path(task).read_bytes())

    class Rows(Dataset[Any]):
        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, index: int) -> dict[str, Any]:
            return rows[index]

    torch.set_num_threads(worker_threads(job.spec))
    training, preprocessor = job.spec.training, fitted.preprocessor
    torch.manual_seed(training.seed)
    network: Any = build(job.spec.model, preprocessor).network
    network = type(network)(type(network.config).from_dict(network.config.to_dict()))  # with its own attention
    pad = preprocessor.tokenizer.id_to_token(preprocessor.pad_token_id)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=preprocessor.tokenizer, pad_token=pad)
    is_language = job.spec.model.causal_lm is not None
    trainer = Trainer(
        network,
        TrainingArguments(
            folder,
            per_device_train_batch_size=per_worker,
            num_train_epochs=training.epochs,
            learning_rate=training.optimizer.adam_w.learning_rate,
            weight_decay=training.optimizer.adam_w.weight_decay,
            max_grad_norm=training.gradient_clipping,
            lr_scheduler_type="linear",
            train_sampling_strategy="group_by_length",
            bf16=resolve_precision(training.precision, torch.device("cpu")) == torch.bfloat16,
            use_cpu=True,
            ddp_find_unused_parameters=False,
            logging_steps=50,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=Rows(),
        processing_class=tokenizer,
        data_collator=(
            DataCollatorForLanguageModeling(tokenizer, mlm=False) if is_language else DataCollatorWithPadding(tokenizer)
        ),
    )
    done = trainer.train()
    if trainer.is_world_process_zero():
        print(f"seconds {done.metrics['train_runtime']}")


def beside(job: TrainJob, folder: Path) -> tuple[float, int]:
    """The Trainer's seconds, and the rows or learned tokens of an epoch."""
    fitted = fit(job.spec)
    examples = prepare_examples(job.spec, fitted)["train"]
    workers, batch = job.spec.workers.count, job.spec.training.batch_size
    if job.spec.model.causal_lm is not None:
        texts = texts_of(examples)
        rows = [{"input_ids": text} for text in texts]
        amount = sum(map(len, texts)) - len(texts)  # the first of each is only read
        per_worker = round(batch * len(texts) / len(examples) / workers)
    else:
        labels = examples.labels
        assert labels is not None
        texts = np.split(examples.values, examples.offsets[1:-1])
        rows = [{"input_ids": text.tolist(), "labels": int(label)} for text, label in zip(texts, labels, strict=True)]
        amount, per_worker = len(rows), batch // workers
    task = folder / "task.pickle"
    task.write_bytes(pickle.dumps((job, fitted, rows, per_worker, str(folder / "hugging-face"))))
    torchrun = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={workers}"]
    done = subprocess.run(
        [*torchrun, __file__, "--rank-of", str(task)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT | {"OMP_NUM_THREADS": str(worker_threads(job.spec))},
    )
    [seconds] = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("seconds ")]
    return float(seconds), amount


def ours(job: TrainJob) -> float:
    """The seconds of trainjob's training."""
    finished = run(job, source=EXAMPLE.parent, started=time.time(), fresh=True)
    return finished.summary.seconds["training"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="text, causal; both by default")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="of the TrainJob")
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank_of:
        hugging_face(arguments.rank_of)
        return
    for kind in arguments.kinds or [*OVERRIDES]:
        unit = UNITS[kind]
        print(f"| {kind}, round | Hugging Face {unit}/s | trainjob {unit}/s | ratio |\n|---|---|---|---|", flush=True)
        ratios = list[float]()
        with tempfile.TemporaryDirectory() as temporary:
            job = load_trainjob(
                EXAMPLE,
                [
                    f"spec.storage={{uri: {temporary}}}",
                    f"spec.training.epochs={arguments.epochs}",
                    "spec.workers.count=2",
                    "spec.dataset.loader=dataLoader",
                    "spec.baselines={}",
                    *OVERRIDES[kind],
                    *arguments.set,
                ],
            )
            for number in range(arguments.rounds):
                (theirs, amount), own = beside(job, Path(temporary)), ours(job)
                total = amount * arguments.epochs
                ratios.append(theirs / own)
                print(f"| {number} | {total / theirs:,.0f} | {total / own:,.0f} | {ratios[-1]:.2f} |", flush=True)
        print(f"\n{kind}, ratio: median {statistics.median(ratios):.2f}\n", flush=True)


if __name__ == "__main__":
    main()
