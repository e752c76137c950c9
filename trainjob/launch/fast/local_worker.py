"""A local worker: calls the function that it finds in a folder, within Ray Train, and leaves the result there.

Forked by `launch.fork_server`; where a fork is not safe, started anew as
`python -m trainjob.launch.fast.local_worker FOLDER`. Its rank is in the environment, as with torchrun.
"""

import faulthandler
import os
import pickle
import select
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

from trainjob.launch.fast.group import result_file, task_file


def main(folder: Path) -> NoReturn:
    faulthandler.enable()
    threading.Thread(target=_die_with_driver, daemon=True).start()
    result = result_file(folder, int(os.environ["RANK"]))
    try:
        trainer = TorchTrainer(
            pickle.loads(task_file(folder).read_bytes()),
            scaling_config=ScalingConfig(num_workers=0),  # pyrefly: ignore[bad-argument-type]
            run_config=RunConfig(name="local"),  # pyrefly: ignore[bad-argument-type]
        )
        _finish(result, trainer.fit().return_value, None)  # pyrefly: ignore[missing-attribute]
    except Exception as error:
        _finish(result, None, error)


def _finish(file: Path, outcome: Any, error: Exception | None) -> NoReturn:
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_bytes(pickle.dumps((outcome, error)))
    unfinished.replace(file)
    sys.stdout.flush()
    os._exit(0 if error is None else 1)  # nothing is left to do that the interpreter's slow end would add


def _die_with_driver() -> None:
    """Standard input is the driver's pipe to the server: it is closed when the driver ends, and silent until then."""
    pipe = select.poll()
    pipe.register(0, 0)  # closing is told in any case
    pipe.poll()
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
