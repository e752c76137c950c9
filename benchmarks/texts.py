"""Compares `trainjob run` on many short texts in a CSV file with datasets and Hugging Face's Trainer.

All fine-tune the same small encoder for some steps: seconds from the command to the first step, and the peak memory of
all processes (PSS, sampled each second), with two processes that train. trainjob runs in local processes, its default
here, and through Ray; it also validates, and writes checkpoints, the model and the report. They alternate, in rounds.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import torch
from memory import peak_gib, write_texts
from pyarrow import csv, parquet
from startup import TORCHRUN, TRAINJOB, first_step, job_file
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.bert.modeling_bert import BertModel

from trainjob.kinds.inputs.text import train_wordpiece
from trainjob.pretrained.tokenizers import save_tokenizer

BARE = Path(__file__).parent / "bare" / "texts.py"
LOADERS = {"local": "dataLoader", "Ray": "rayData"}


def write_encoder(folder: Path, texts: list[str]) -> None:
    """A BERT of two layers with random weights."""
    tokenizer, config = train_wordpiece(texts, 8192, 128)
    folder.mkdir()
    save_tokenizer(tokenizer, config, folder)
    torch.manual_seed(0)
    BertModel(
        BertConfig(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=512,
        )
    ).save_pretrained(folder)


def write_job(folder: Path, loader: str, batch: int, steps: int) -> Path:
    spec = {
        "model": {"textClassifier": {"pretrained": str(folder / "encoder"), "maxLength": 32}},
        "dataset": {
            "train": {"uri": "texts.csv"},
            "validation": {"fraction": 0.05},
            "text": ["text"],
            "label": "label",
            "loader": loader,
        },
        "training": {"batchSize": batch, "maxSteps": steps, "precision": "float32"},
        "workers": {"count": 2},
        "storage": {"uri": "runs"},
        "baselines": {},
    }
    return job_file(folder, loader.lower(), spec)


def trainjob(file: Path) -> tuple[float, float]:
    """Seconds to the end of the first step, and GiB."""
    since = time.time()
    peak, _ = peak_gib([*TRAINJOB, "run", str(file), "--fresh"])
    return first_step(file) - since, peak


def hugging_face(folder: Path, batch: int, steps: int) -> tuple[float, float]:
    """Seconds to the end of the first step, and GiB."""
    written = folder / "written"
    written.unlink(missing_ok=True)
    shutil.rmtree(folder / "texts.csv-cache", ignore_errors=True)
    files = [str(folder / "texts.csv"), str(folder / "encoder")]
    since = time.time()
    peak, _ = peak_gib([*TORCHRUN, "--nproc-per-node=2", str(BARE), *files, str(batch), str(steps), str(written)])
    return float(written.read_text()) - since, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("Trainer", *LOADERS)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_texts(folder / "texts.parquet", arguments.rows)
        table = parquet.read_table(folder / "texts.parquet")
        csv.write_csv(table, folder / "texts.csv")
        write_encoder(folder / "encoder", table["text"].slice(0, 50_000).to_pylist())
        del table
        print("| round | | first step, s | peak GiB |\n|---|---|---|---|")
        for number in range(arguments.rounds):
            found["Trainer"].append(hugging_face(folder, arguments.batch, arguments.steps))
            for name, loader in LOADERS.items():
                found[name].append(trainjob(write_job(folder, loader, arguments.batch, arguments.steps)))
            for name, rounds in found.items():
                print(f"| {number} | {name} | {rounds[-1][0]:.1f} | {rounds[-1][1]:.2f} |", flush=True)
    for index, figure in enumerate(("first step", "peak")):
        for name in LOADERS:
            ratios = [ours[index] / bare[index] for ours, bare in zip(found[name], found["Trainer"], strict=True)]
            shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"\n{figure}, {name} / Trainer: {statistics.median(ratios):.2f} ({shown})")


if __name__ == "__main__":
    main()
