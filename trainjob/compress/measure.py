"""Measures size, speed and predictions of a model, each model in its own process, which has loaded nothing else.

That process is `python -m trainjob.compress.measure MODEL ROWS RESULT BATCH_SIZE THREADS SECONDS`.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from trainjob.errors import UserError

BATCH_SIZE = 64
SINGLES, WARM_UP = 300, 20
"""Rows that are predicted one by one, and how many before these."""
SECONDS = 3.0
"""Batches are predicted for at least this long."""
WEIGHTS = ("model.safetensors", "model.onnx", "lightgbm*.txt")


def measure(model: Path, rows: pa.Table, threads: int, scratch: Path) -> dict[str, Any]:
    """Size, latencies, rows_per_second and memory as `trainjob.runs.variants.Variant` has them, and `predicted`, the
    prediction for each row. `scratch` is a folder that may be written to."""
    table, result = scratch / "rows.arrow", scratch / "measured.json"
    with ipc.new_file(table, rows.schema) as writer:
        writer.write_table(rows)
    result.unlink(missing_ok=True)
    arguments = [model, table, result, BATCH_SIZE, threads, SECONDS]
    done = subprocess.run([sys.executable, "-m", __name__, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0 or not result.exists():
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UserError(f"{model} could not be measured: {last}")
    measured = json.loads(result.read_bytes())
    size = sum(file.stat().st_size for pattern in WEIGHTS for file in model.glob(pattern))
    return measured | {"size": size}


def main(model: Path, table: Path, result: Path, batch_size: int, threads: int, seconds: float) -> None:
    import torch

    from trainjob.predictor import Predictor

    with ipc.open_file(table) as reader:
        rows = reader.read_all()
    torch.set_num_threads(1)
    predictor = Predictor.load(model)
    chosen = np.linspace(0, len(rows) - 1, SINGLES).astype(int)
    taken = [_seconds(predictor, rows.slice(row, 1), 1) for row in [*chosen[:WARM_UP], *chosen]][WARM_UP:]
    memory = _most_memory()
    torch.set_num_threads(threads)
    predictor = Predictor.load(model)
    predicted = predictor.predict(rows, batch_size)  # which also prepares code for each size
    passes = [_seconds(predictor, rows, batch_size)]
    while sum(passes) < seconds:
        passes.append(_seconds(predictor, rows, batch_size))
    measured = {
        "latency_p50": float(np.quantile(taken, 0.5)),
        "latency_p99": float(np.quantile(taken, 0.99)),
        "rows_per_second": len(rows) / float(np.median(passes)),
        "memory": memory,
        "predicted": predicted,
    }
    result.write_text(json.dumps(measured))


def _seconds(predictor: Any, rows: pa.Table, batch_size: int) -> float:
    since = time.perf_counter()
    predictor.outputs(rows, batch_size)
    return time.perf_counter() - since


def _most_memory() -> int:
    """The peak memory of this process in bytes; getrusage would include the parent process."""
    status = Path("/proc/self/status").read_text()
    return 2**10 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))


def all_threads() -> int:
    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    main(
        Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), float(sys.argv[6])
    )
