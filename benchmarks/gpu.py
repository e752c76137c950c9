"""Measures and checks everything that needs a GPU. Prints one table, and writes gpu.json.

It needs one GPU with 141 GB, and neither a Ray cluster nor a network. `gpu_carry.py` packs the missing packages for a
machine with little more than PyTorch, transformers and accelerate. Without a GPU, `--tiny` runs small networks on the
CPU to test the script itself. Figures that could not be measured are marked so.
"""

import argparse
import json
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from gpu_cases import BERT, LLAMA, Case, trainer_of
from gpu_checks import CHECKS, Bench, NotMeasured, syncs_of
from gpu_models import MODELS
from gpu_runs import RUNS
from gpu_speed import checkpoint_seconds, measure

AIMS = {
    "bert": {"beside Hugging Face": 1.1, "beside the bare loop": 0.98, "MFU": 0.35},
    "bert, compiled": {"beside Hugging Face": 1.1, "beside the bare loop": 0.98, "MFU": 0.35},
    "llama": {"beside Hugging Face": 1.0, "beside the bare loop": 0.98, "MFU": 0.40},
    "llama, compiled": {"beside Hugging Face": 1.0, "beside the bare loop": 0.98, "MFU": 0.45},
}
MAX_SECONDS = 2.0
"""Maximum seconds that training may wait for a checkpoint."""


class Row(dict[str, Any]):
    """One line of the table: `what`, `result`, `value`, `aim`."""

    def __str__(self) -> str:
        return f"| {self['what']} | {self['result']} | {self['value']} | {self['aim']} |"


def check(name: str, bench: Bench) -> list[Row]:
    return [Row(what=name, result="right", value=ALL_CHECKS[name](bench), aim="")]


def syncs(kind: str, bench: Bench) -> str:
    """Checks that the host never waits for the GPU in the steps of a small transformers network."""
    bench.needs_gpu()
    case = Case(kind, (BERT if kind == "bert" else LLAMA).tiny(), bench.device, shortens=True)
    return syncs_of(trainer_of(case, bench.folder / f"syncs-{kind}"))


ALL_CHECKS = CHECKS | MODELS | {f"syncs, {kind}": partial(syncs, kind) for kind in ("bert", "llama")} | RUNS


def speed(name: str, device: torch.device, tiny: bool, rounds: int) -> list[Row]:
    kind, _, compiled = name.partition(", ")
    size = BERT if kind == "bert" else LLAMA
    training = {"compile": bool(compiled)}
    found = measure(Case(kind, size.tiny() if tiny else size, device, training), rounds)
    rows = list[Row]()
    for what, value in found.items():
        aim = AIMS[name].get(what)
        if value is None:
            result, shown = "not measured", "what this device could do at most is not known"
        elif aim is None:
            result, shown = "measured", f"{value:,.0f} tokens/s"
        else:
            result, shown = "reached" if value >= aim else "missed", f"{value:.3f}"
        if tiny and result in ("reached", "missed"):
            result = "tiny"
        rows.append(Row(what=f"{name}: {what}", result=result, value=shown, aim=f"≥ {aim}" if aim else ""))
    return rows


def checkpoint(device: torch.device, tiny: bool) -> list[Row]:
    seconds = checkpoint_seconds(Case("llama", LLAMA.tiny() if tiny else LLAMA, device))
    result = "tiny" if tiny else "reached" if seconds <= MAX_SECONDS else "missed"
    return [Row(what="llama: a checkpoint blocks", result=result, value=f"{seconds:.2f} s", aim=f"≤ {MAX_SECONDS:g} s")]


def rows_of(name: str, work: Callable[[], list[Row]]) -> list[Row]:
    try:
        return work()
    except NotMeasured as error:
        return [Row(what=name, result="not measured", value=str(error), aim="")]
    except Exception as error:  # the others are still worth knowing
        traceback.print_exc()
        said = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        return [Row(what=name, result="WRONG", value=said, aim="")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*ALL_CHECKS, *AIMS, "checkpoint"]
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--tiny", action="store_true", help="small networks; on the CPU unless --device is given")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("gpu.json"))
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    arguments = parser.parse_args()
    has_gpu = torch.cuda.is_available()
    device = torch.device("cpu" if arguments.tiny and not has_gpu else arguments.device)
    found = list[Row]()
    on = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}, {on}\n")
    print("| what | | | aim |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(device, Path(folder))
        works: dict[str, Callable[[], list[Row]]] = {
            **{name: partial(check, name, bench) for name in ALL_CHECKS},
            **{name: partial(speed, name, device, arguments.tiny, arguments.rounds) for name in AIMS},
            "checkpoint": partial(checkpoint, device, arguments.tiny),
        }
        for name in arguments.only:
            for row in rows_of(name, works[name]):
                print(row, flush=True)
                found.append(row)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "device": on}
    arguments.output.write_text(json.dumps(versions | {"tiny": arguments.tiny, "rows": found}, indent=2))
    if any(row["result"] == "WRONG" for row in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
