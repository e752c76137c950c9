"""One worker process of this machine: calls the function that it finds in a folder, in a process group of all ranks.

`python -m trainjob.launch.local_worker FOLDER`, or forked by `launch.fast.fork_server`. The rank is in the environment,
as with torchrun; the result is written to the folder.
"""

import faulthandler
import os
import pickle
import select
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn


def work_file(folder: Path) -> Path:
    """The pickled function that every worker calls."""
    return folder / "work.pickle"


def log_file(folder: Path, rank: int) -> Path:
    """The file for a worker's output."""
    return folder / f"worker-{rank}.log"


def result_file(folder: Path, rank: int) -> Path:
    """The pickled pair (value that the function returned, exception that it raised); missing if the process died."""
    return folder / f"worker-{rank}.result"


def main(folder: Path) -> NoReturn:
    faulthandler.enable()
    threading.Thread(target=_die_with_driver, daemon=True).start()
    result = result_file(folder, int(os.environ["RANK"]))
    try:
        _finish(result, _with_other_ranks(pickle.loads(work_file(folder).read_bytes())), None)
    except Exception as error:
        _finish(result, None, error)


def _with_other_ranks(work: Callable[[], Any]) -> Any:
    """Calls `work` in a process group of all ranks, with a GPU of its own if there are any."""
    import torch
    from torch import distributed

    has_gpu = torch.cuda.is_available()
    distributed.init_process_group("nccl" if has_gpu else "gloo")
    if has_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    value = work()
    distributed.destroy_process_group()
    return value


def _finish(file: Path, value: Any, error: Exception | None) -> NoReturn:
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_bytes(pickle.dumps((value, error)))
    unfinished.replace(file)
    sys.stdout.flush()
    os._exit(0 if error is None else 1)  # skips the interpreter's slow shutdown, which has nothing left to do


def _die_with_driver() -> None:
    """Ends this process when the driver ends: standard input is a pipe of the driver's, which then closes."""
    pipe = select.poll()
    pipe.register(0, 0)  # reports nothing but the closing
    pipe.poll()
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
