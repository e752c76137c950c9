"""One rank of a plain loop that trains TabM on a CSV file, read by pandas, from tensors in memory.

`torchrun tables.py FILE WRITTEN BATCH SETTINGS`: rank 0 writes the time of the first step and the rows/s over all ranks
to WRITTEN. SETTINGS are TabM's, as JSON. Numbers are embedded piece by piece between 48 quantiles of 40,000 rows.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.distributed as dist
from rtdl_num_embeddings import PiecewiseLinearEmbeddings, compute_bins
from tabm import TabM
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

BINS, BINNED_ROWS, LABEL = 48, 40_000, "label"


def main(file: Path, written: Path, batch: int, settings: dict[str, Any]) -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    frame = pd.read_csv(file)
    labels = torch.from_numpy(pd.factorize(frame.pop(LABEL), sort=True)[0])
    texts = frame.select_dtypes(exclude="number")
    categories = torch.from_numpy(np.stack([pd.factorize(texts[name], sort=True)[0] for name in texts], axis=1))
    measured = frame.select_dtypes("number")
    numbers = torch.from_numpy(measured.fillna(measured.mean()).to_numpy(np.float32))
    del frame, texts, measured
    numbers = (numbers - numbers.mean(0)) / numbers.std(0)
    torch.manual_seed(0)
    is_held = torch.rand(len(labels)) < 0.1
    train, held = torch.nonzero(~is_held)[:, 0], torch.nonzero(is_held)[:, 0]
    bins = compute_bins(numbers[train[torch.randperm(len(train))[:BINNED_ROWS]]], BINS)
    network = TabM.make(
        n_num_features=numbers.shape[1],
        cat_cardinalities=(categories.amax(0) + 1).tolist(),
        num_embeddings=PiecewiseLinearEmbeddings(bins, settings["embeddingSize"], activation=False, version="B"),
        d_out=int(labels.max()) + 1,
        k=settings["members"],
        n_blocks=settings["blocks"],
        d_block=settings["hiddenSize"],
        dropout=0.1,
    )
    model = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    since, first_step = time.perf_counter(), 0.0
    for rows in train[torch.randperm(len(train))].split(batch):
        own = rows[rank::world]
        logits = model(numbers[own], categories[own])
        loss = functional.cross_entropy(logits.flatten(0, 1), labels[own].repeat_interleave(settings["members"]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        first_step = first_step or time.time()
    speed = len(train) / (time.perf_counter() - since)
    model.eval()
    right = torch.zeros(())
    with torch.inference_mode():
        for rows in held[rank::world].split(batch):
            right += (network(numbers[rows], categories[rows]).softmax(2).mean(1).argmax(1) == labels[rows]).sum()
    dist.all_reduce(right)
    if rank == 0:
        print(f"accuracy {right.item() / len(held):.3f}", file=sys.stderr)
        written.write_text(f"{first_step} {speed}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))
