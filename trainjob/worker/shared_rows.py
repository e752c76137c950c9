"""Rows that the workers of a node share in memory."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from trainjob.data import Examples
from trainjob.launch.arrays import load_arrays, save_arrays
from trainjob.scratch import scratch_folder
from trainjob.worker.distributed import barrier, from_local_rank_0, is_local_rank_0, world_size


def read_once_per_node(read: Callable[[], Examples]) -> Examples:
    """Returns the rows that `read` returns. The first rank of each node calls `read` and writes the rows to files,
    which all ranks of the node map into memory. Every rank must call this."""
    if world_size() == 1:
        return read()
    with ExitStack() as stack:
        folder: str | None = None
        if is_local_rank_0():
            folder = str(stack.enter_context(scratch_folder()))
            save_arrays({"rows": read()}, Path(folder))
        examples = load_arrays(Path(from_local_rank_0(folder)))["rows"]
        barrier()  # the files may be removed once all ranks have mapped them
    return examples
