"""Rows that the workers of a node share in memory."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from trainjob.data import Examples
from trainjob.launch.freed_memory import return_freed_memory
from trainjob.launch.row_files import map_rows, save_rows
from trainjob.scratch import scratch_folder
from trainjob.worker.distributed import barrier, from_local_rank_0, is_local_rank_0


def read_once_per_node(read: Callable[[], Iterable[pa.Table]]) -> Examples:
    """Returns the rows that `read` returns. The first rank of each node calls `read` and writes the rows to files,
    table by table; all ranks of the node map the files into memory. Every rank must call this."""
    with ExitStack() as stack:
        folder: str | None = None
        if is_local_rank_0():
            folder = str(stack.enter_context(scratch_folder()))
            save_rows((("rows", table) for table in read()), Path(folder))
            return_freed_memory()  # of the tables
        examples = map_rows(Path(from_local_rank_0(folder)))["rows"]
        barrier()  # the files may be removed once all ranks have mapped them
    return examples
