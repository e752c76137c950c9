"""Trains a text classifier as the documentation of Hugging Face's Trainer shows it, on a CSV file of texts and labels,
in two processes that torchrun starts.

Arguments: the CSV file, the pretrained encoder's folder, the rows of a step, the number of steps, and the file into
which the time of the first step is written, in seconds since 1970.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from datasets import load_dataset
from transformers.data.data_collator import DataCollatorWithPadding
from transformers.models.auto.modeling_auto import AutoModelForSequenceClassification
from transformers.models.auto.tokenization_auto import AutoTokenizer
from transformers.trainer import Trainer
from transformers.trainer_callback import TrainerCallback
from transformers.training_args import TrainingArguments


class FirstStep(TrainerCallback):
    def __init__(self, written: Path) -> None:
        self._written = written

    def on_step_end(self, *_: Any, **__: Any) -> None:
        if not self._written.exists():
            self._written.write_text(str(time.time()))


def main() -> None:
    file, encoder, batch, steps, written = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            f"{folder}/model",
            per_device_train_batch_size=int(batch) // 2,
            max_steps=int(steps),
            learning_rate=1e-4,
            use_cpu=True,
            ddp_backend="gloo",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        tokenizer: Any = AutoTokenizer.from_pretrained(encoder)
        with arguments.main_process_first():  # the other process then finds the rows in the cache
            rows: Any = load_dataset("csv", data_files=file, split="train", cache_dir=f"{file}-cache")
            rows = rows.class_encode_column("label").train_test_split(0.05, stratify_by_column="label", seed=0)
            rows = rows.map(lambda some: tokenizer(some["text"], truncation=True, max_length=32), batched=True)
        classes = rows["train"].features["label"].names
        trainer = Trainer(
            AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=len(classes)),
            arguments,
            DataCollatorWithPadding(tokenizer),
            rows["train"],
            callbacks=[FirstStep(Path(written))],
        )
        trainer.train()


if __name__ == "__main__":
    main()
