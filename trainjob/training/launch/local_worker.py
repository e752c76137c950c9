"""A worker process of `launch.local`: task on standard input, outcome into the file named as argument."""

import faulthandler
import os
import pickle
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

from trainjob.training.imports import importing


def main() -> None:
    faulthandler.enable()
    with importing():
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        from trainjob.training.worker import work

    task = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_die_with_driver, daemon=True).start()
    trainer = TorchTrainer(
        partial(work, task),
        scaling_config=ScalingConfig(num_workers=0),
        run_config=RunConfig(name="local"),
    )
    try:
        _finish(trainer.fit().return_value, None)
    except Exception as error:
        _finish(None, error)


def _finish(outcome: Any, error: Exception | None) -> None:
    Path(sys.argv[1]).write_bytes(pickle.dumps((outcome, error)))
    sys.stdout.flush()
    os._exit(0 if error is None else 1)  # nothing is left to do that the interpreter's slow end would add


def _die_with_driver() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
