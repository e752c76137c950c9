"""Work on many items as tasks of a Ray cluster."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, TypeVar

from trainjob.data.batches.prepare import TaskError, user_errors
from trainjob.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_TASKS_AHEAD = 256
"""Most tasks that run ahead of the result that is returned next."""


class RayTasks:
    """A `Mapper` that may be used before the cluster has started: a single item is computed here, more wait for
    `started`."""

    def __init__(self) -> None:
        self.started: Future[None] = Future()

    @contextmanager
    def waiting(self) -> Generator[None]:
        """If the block fails before the cluster has started, raises its error in the threads that wait for the
        cluster."""
        try:
            yield
        except BaseException as error:
            if not self.started.done():
                self.started.set_exception(error)
            raise

    def __call__(self, work: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]:
        waiting = iter(items)
        first = list(islice(waiting, 2))
        if len(first) < 2:
            yield from map(work, first)
            return
        self.started.result()
        yield from _on_cluster(work, chain(first, waiting))


def _on_cluster(work: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Result]:
    import ray

    run: Any = ray.remote(num_cpus=1)(_run)
    shared = ray.put(work)
    pending: deque[Any] = deque()
    try:
        while True:
            ahead = min(MAX_TASKS_AHEAD, 2 * max(1, int(ray.cluster_resources().get("CPU", 1))))
            pending.extend(run.remote(shared, item) for item in islice(items, max(0, ahead - len(pending))))
            if not pending:
                return
            with user_errors():
                result: Any = ray.get(pending.popleft())
            yield result
    finally:
        for task in pending:
            ray.cancel(task, force=False)


def _run(work: Callable[[Any], Any], item: Any) -> Any:
    try:
        return work(item)
    except UserError as error:
        raise TaskError(error) from None
