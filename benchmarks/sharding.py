"""Compares a decoder of about 100 million parameters on two ranks, replicated and sharded: peak memory of each process,
seconds that training waits for a checkpoint, and seconds to resume.

    python benchmarks/sharding.py                  # about 8 GiB of memory, some minutes on two cores
    python benchmarks/sharding.py --hidden 240     # a ninth of the parameters

Memory is the process's peak (ru_maxrss) minus its value before the model was built. The C library is configured to
return freed memory at once, which it would otherwise keep. A checkpoint's files are still in the page cache when they
are read.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAYERS, HEADS, LENGTH, STEPS = 12, 12, 64, 3
MIB = 2**20
MINUTE = 60
GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536"}


def rank_of(placement: str, hidden: int, folder: Path) -> dict[str, float]:
    """The measurements of one rank."""
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    from trainjob.api import TrainJobSpec
    from trainjob.data import Preprocessor
    from trainjob.kinds.causal_lm.tokens import TokensInput, train_byte_bpe
    from trainjob.kinds.targets.next_token import NextToken
    from trainjob.storage import Folder
    from trainjob.worker.checkpointing import Checkpointer, CheckpointStore, TrainingState
    from trainjob.worker.distributed import background_group
    from trainjob.worker.placement import build_for, shard
    from trainjob.worker.step import Step

    distributed.init_process_group("gloo")
    torch.set_num_threads(1)
    device, ranks = torch.device("cpu"), distributed.get_world_size()
    decoder = {"layers": LAYERS, "hiddenSize": hidden, "heads": HEADS, "vocabularySize": 300}
    spec = TrainJobSpec.model_validate(
        {
            "model": {"causalLM": {"decoder": decoder, "maxLength": LENGTH}},
            "dataset": {"train": {"uri": "texts.csv"}, "text": ["text"]},
            "training": {"sharding": placement, "batchSize": ranks, "precision": "float32"},
            "checkpoints": {"metric": "validation_perplexity"},
            "workers": {"count": ranks},
        }
    )
    tokens = TokensInput(["text"], LENGTH, 10.0, *train_byte_bpe(["some text"] * 50, 300, LENGTH))
    preprocessor = Preprocessor("causalLM", tokens, NextToken())
    store = CheckpointStore(Folder(str(folder)), spec.checkpoints, background_group())

    def built() -> Step:
        module = build_for(spec.model, spec.training, preprocessor, device)
        is_copy = placement == "none"
        model = DistributedDataParallel(module) if is_copy else shard(module, spec.training, device, (1, ranks))
        return Step(spec, preprocessor, module, model, device, torch.float32)

    def checkpointer(step: Step) -> Checkpointer:
        return Checkpointer(store, lambda *_: None, step, None, preprocessor)

    before = peak()
    step = built()
    tokens = torch.randint(0, 256, (1, LENGTH))
    positions = torch.arange(LENGTH)[None]
    for _ in range(STEPS):
        step.model(input_ids=tokens, position_ids=positions).logsumexp(-1).mean().backward()
        step.update()
    found = {"parameters": float(sum(each.numel() for each in step.module.parameters())), "peak MiB": peak() - before}
    with checkpointer(step) as saver:
        since = time.perf_counter()
        saver.save(TrainingState(step=STEPS), {}, None)
        found["save blocks s"] = time.perf_counter() - since
        saver.wait()
        found["saved after s"] = time.perf_counter() - since
    found["peak with a save MiB"] = peak() - before
    del step, saver
    other = built()
    since = time.perf_counter()
    name = store.latest()
    assert name is not None
    checkpointer(other).restore(name)
    found["resume s"] = time.perf_counter() - since
    distributed.barrier()
    return found


def peak() -> float:
    """Memory in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


def measure(placement: str, hidden: int, ranks: int) -> list[dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--standalone"]
        arguments = [__file__, "--hidden", str(hidden), "--rank-of", placement, "--folder", folder]
        subprocess.run([*program, *arguments], check=True, env=os.environ | GIVES_BACK)
        return [json.loads(file.read_text()) for file in sorted(Path(folder).glob("rank-*.json"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hidden", type=int, default=720)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rank-of", choices=["none", "full"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank_of:
        from torch import distributed

        found = rank_of(given.rank_of, given.hidden, given.folder)
        (given.folder / f"rank-{distributed.get_rank()}.json").write_text(json.dumps(found))
        return
    for placement in ("none", "full"):
        for rank, found in enumerate(measure(placement, given.hidden, given.ranks)):
            told = ", ".join(f"{name} {value:,.2f}" for name, value in found.items())
            share = 100 * found["save blocks s"] / MINUTE
            print(f"sharding {placement}, rank {rank}: {told}; a save each minute {share:.2f}% of the time", flush=True)


if __name__ == "__main__":
    main()
