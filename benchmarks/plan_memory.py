"""Compares the memory that `trainjob plan` computes with the peak that PyTorch's CPU allocator reports in real steps.

The networks have the sizes of well-known ones and random weights, so nothing is downloaded. Memory is that of tensors:
the weights, gradients, optimizer state and activations of one process in float32.
"""

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from PIL import Image

MIB = 2**20
WORDS = [f"w{number}" for number in range(3000)]


def texts(folder: Path, words: int) -> dict[str, Any]:
    """A CSV with 400 texts of up to so many words."""
    chance = random.Random(0)
    with open(folder / "texts.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label"])
        for row in range(400):
            table.writerow([" ".join(chance.choices(WORDS, k=chance.randint(words // 4, words))), f"class-{row % 4}"])
    return {"train": {"uri": "texts.csv"}, "validation": {"fraction": 0.1}, "text": ["text"]}


def images(folder: Path, size: int) -> dict[str, Any]:
    for row in range(80):
        place = folder / "images" / f"class-{row % 4}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(row).integers(0, 256, (size, size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"{row}.png")
    return {"train": {"uri": "images"}, "validation": {"fraction": 0.1}}


def save_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "<s>", "</s>"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    names = dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def bert(folder: Path) -> None:
    """BERT base."""
    from transformers import BertConfig, BertForSequenceClassification

    BertForSequenceClassification(BertConfig()).save_pretrained(folder)
    save_tokenizer(folder)


def vit(folder: Path) -> None:
    """ViT small."""
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    config = ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536)
    ViTForImageClassification(config).save_pretrained(folder)
    ViTImageProcessor().save_pretrained(folder)


def llama(folder: Path) -> None:
    """A Llama of 160 million weights with grouped keys and values."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=12,
        num_key_value_heads=4,
        max_position_embeddings=2048,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    save_tokenizer(folder)


Case = tuple[dict[str, Any], dict[str, Any], Callable[[Path], dict[str, Any]], Callable[[Path], None] | None]
PRETRAINED = "./pretrained"
CASES: dict[str, Case] = {
    "text classifier from scratch, 6 layers of 384": (
        {"textClassifier": {"encoder": {"layers": 6, "hiddenSize": 384, "heads": 6}, "maxLength": 256}},
        {"batchSize": 32},
        lambda folder: texts(folder, 300),
        None,
    ),
    "BERT base": (
        {"textClassifier": {"pretrained": PRETRAINED, "maxLength": 128}},
        {"batchSize": 16},
        lambda folder: texts(folder, 200),
        bert,
    ),
    "CNN, images of 64 x 64": (
        {"imageClassifier": {"cnn": {"channels": [32, 64, 128]}}},
        {"batchSize": 32},
        lambda folder: images(folder, 64),
        None,
    ),
    "ViT small": (
        {"imageClassifier": {"pretrained": PRETRAINED}},
        {"batchSize": 16},
        lambda folder: images(folder, 224),
        vit,
    ),
    "language model from scratch, 4 layers of 256": (
        {"causalLM": {"decoder": {"layers": 4, "hiddenSize": 256, "heads": 4}, "maxLength": 256}},
        {"batchSize": 16},
        lambda folder: texts(folder, 300),
        None,
    ),
    "Llama, 160 million weights": (
        {"causalLM": {"pretrained": PRETRAINED, "maxLength": 256}},
        {"batchSize": 4},
        lambda folder: texts(folder, 300),
        llama,
    ),
    "the same with an adapter": (
        {"causalLM": {"pretrained": PRETRAINED, "maxLength": 256, "lora": {}}},
        {"batchSize": 4},
        lambda folder: texts(folder, 300),
        llama,
    ),
    "the same with activationCheckpointing": (
        {"causalLM": {"pretrained": PRETRAINED, "maxLength": 256}},
        {"batchSize": 4, "activationCheckpointing": True},
        lambda folder: texts(folder, 300),
        llama,
    ),
}


def write_trainjob(folder: Path, case: Case) -> Path:
    model, training, make_data, make_model = case
    dataset = make_data(folder)
    if "causalLM" not in model:
        dataset["label"] = "label"
    if "imageClassifier" in model:
        del dataset["label"]
    if make_model is not None:
        make_model(folder / "pretrained")
    spec = {"model": model, "dataset": dataset, "training": {"precision": "float32", "epochs": 1, **training}}
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "planned"}}
    file = folder / "trainjob.yaml"
    file.write_text(yaml.safe_dump(document | {"spec": spec}))
    return file


def peak_of_steps(file: Path) -> int:
    """The peak of the allocator over the steps with the longest rows, with real tensors."""
    from trainjob.api.load import load_trainjob
    from trainjob.data import fit, prepare_examples
    from trainjob.data.batches.loaders import InMemoryBatches, Shard
    from trainjob.models import build
    from trainjob.worker.step import Step

    spec = load_trainjob(file, []).spec
    fitted = fit(spec)
    shard = Shard(0, 1, spec.training.batch_size, spec.training.seed)
    batches = list(InMemoryBatches(prepare_examples(spec, fitted)["train"], fitted.preprocessor, shard).epoch(0))
    batches.sort(key=lambda batch: -max(tensor.numel() for tensor in batch.inputs.values()))
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profiled:
        module = build(spec.model, fitted.preprocessor)
        if spec.training.activation_checkpointing:
            module.recompute_activations()
        step = Step(spec, fitted.preprocessor, module, module, torch.device("cpu"), torch.float32)
        module.train()
        with torch.profiler.record_function("steps"):
            for batch in batches[:2]:
                step.backward(batch, torch.tensor(float(batch.weight)))
                step.update()
    now = peak = 0
    profiler: Any = profiled.profiler
    events = sorted(profiler.kineto_results.events(), key=lambda event: event.start_ns())
    since = next(event.start_ns() for event in events if event.name() == "steps")
    for event in events:
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now) if event.start_ns() >= since else peak
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--measure", type=Path, metavar="FILE", help="measure one TrainJob, and print its peak in bytes"
    )
    parser.add_argument("--only", help="the case whose name has this in it")
    arguments = parser.parse_args()
    if arguments.measure:
        print(peak_of_steps(arguments.measure))
        return
    print("| model | rows | weights | gradients | optimizer | activations | planned | measured | planned / measured |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, case in CASES.items():
        if arguments.only and arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = write_trainjob(Path(folder), case)
            command = [sys.executable, "-m", "trainjob", "plan", str(file), "--json"]
            plan = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            command = [sys.executable, __file__, "--measure", str(file)]
            measured = int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        memory = plan["memory"]
        parts = [memory[part] for part in ("weights", "gradients", "optimizer", "activations", "total")]
        shown = " | ".join(f"{part / MIB:,.0f}" for part in [*parts, measured])
        print(f"| {name} | {plan['rowsPerWorker']} | {shown} | {memory['total'] / measured:.2f} |", flush=True)


if __name__ == "__main__":
    main()
