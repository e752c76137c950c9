"""`trainjob.AsyncClient`: `trainjob.Client` for asyncio. Its requests are the same and run in threads."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from os import PathLike
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from trainjob.client.folders import started_run
from trainjob.client.job_state import JobState, log_lines, pull, submit, until_success
from trainjob.client.live import live_display
from trainjob.client.runs import OnProgress, Run, TrainJobSource
from trainjob.cluster.client import ClusterClient
from trainjob.cluster.kubeconfig import connect
from trainjob.errors import UserError
from trainjob.runs.files import RunFiles

if TYPE_CHECKING:
    import pandas as pd

    from trainjob.generator import TextGenerator
    from trainjob.predictor import Predictor

_Item = TypeVar("_Item")


class AsyncClient:
    """The TrainJobs of a cluster. Methods raise ClusterError, a UserError.

    Cancelling an await leaves the job alone. A request that is under way still completes; following a job or its logs,
    and copying its files, end within seconds.
    """

    def __init__(self, context: str | None = None, namespace: str | None = None) -> None:
        """Connects as kubectl does: to a context of the kubeconfig, by default the current one."""
        self._cluster = ClusterClient(connect(context, namespace))

    @property
    def namespace(self) -> str:
        """The namespace of jobs that do not name another."""
        return self._cluster.namespace

    async def submit(self, job: TrainJobSource, overrides: Sequence[str] = ()) -> "AsyncJob":
        """Checks a TrainJob and applies it, with the other objects of its file. Raises InvalidDocument."""
        return AsyncJob(self._cluster, await asyncio.to_thread(submit, self._cluster, job, overrides))

    async def jobs(self, namespace: str | None = None, *, all_namespaces: bool = False) -> "list[AsyncJob]":
        """The jobs of a namespace, by default the client's, or of all namespaces."""
        found = await asyncio.to_thread(self._cluster.jobs, None if all_namespaces else namespace or self.namespace)
        return [AsyncJob(self._cluster, each) for each in found]

    async def job(self, name: str, namespace: str | None = None) -> "AsyncJob":
        """The job `name`. Raises NoSuchJob."""
        return AsyncJob(self._cluster, await asyncio.to_thread(self._cluster.job, name, namespace))


class AsyncJob(JobState):
    """A TrainJob on a cluster, as it was when it was last read. A notebook shows it with its progress."""

    async def refresh(self) -> "AsyncJob":
        """Reads the job again. Raises NoSuchJob if it is gone."""
        self._job = await asyncio.to_thread(self._cluster.job, self.name, self.namespace)
        return self

    async def wait(self, timeout: float | None = None, on_progress: OnProgress = lambda _: None) -> "AsyncJob":
        """Waits until the job has succeeded. `on_progress` is called with each new state of training, and a notebook
        shows it.

        Raises JobFailed, JobTimeout after `timeout` seconds, and NoSuchJob if the job is deleted meanwhile.
        """
        cluster, show = ClusterClient(self._cluster.connection.another()), live_display()
        async with aclosing(_in_thread(cluster, lambda: until_success(cluster, self._job, timeout))) as states:
            async for found in states:
                self._job = found
                show(self._repr_html_())
                if self.status.training is not None:
                    on_progress(self.status.training)
        return self

    async def logs(self, follow: bool = False) -> AsyncGenerator[str]:
        """The lines of the driver's log, with what rank 0 prints. With `follow`, continues until the job ends. Without
        the driver's pod, rank 0's log in the run's folder."""
        cluster = ClusterClient(self._cluster.connection.another())
        async with aclosing(_in_thread(cluster, lambda: log_lines(cluster, self._job, follow))) as lines:
            async for line in lines:
                yield line

    async def run(self) -> Run:
        """The job's run in its storage. Raises UserError if there is none yet. A volume is read by
        a pod, which is deleted when this process ends."""
        return Run(await asyncio.to_thread(started_run, self._cluster, self._job))

    async def metrics(self) -> "pd.DataFrame":
        """The metrics of each step and each epoch, one row each; the column `kind` tells them apart."""
        return await asyncio.to_thread((await self.run()).metrics)

    async def predictor(self) -> "Predictor | TextGenerator":
        """The best model; a TextGenerator for a language model."""
        return await asyncio.to_thread((await self.run()).predictor)

    async def pull(self, folder: str | PathLike[str] | None = None, what: RunFiles = "model") -> Path:
        """Copies the model, the report or all files of the run into a folder, by default one of the job's name, and
        returns the folder. See `trainjob.runs.pull`."""
        is_cancelled = Event()

        def stop_if_cancelled(*_: int) -> None:
            if is_cancelled.is_set():
                raise UserError("the copy was cancelled; the same call continues it")

        try:
            return await asyncio.to_thread(pull, self._cluster, self._job, folder, what, stop_if_cancelled)
        finally:
            is_cancelled.set()

    async def suspend(self) -> None:
        """Deletes the job's pods until it is resumed."""
        self._job = await asyncio.to_thread(self._cluster.suspend, self._job, True)

    async def resume(self) -> None:
        """Continues a suspended job from its latest checkpoint."""
        self._job = await asyncio.to_thread(self._cluster.suspend, self._job, False)

    async def delete(self) -> None:
        """Deletes the job with its pods. Its storage stays."""
        await asyncio.to_thread(self._cluster.delete, self._job)


async def _in_thread(cluster: ClusterClient, begin: Callable[[], Iterator[_Item]]) -> AsyncGenerator[_Item]:
    """Yields the items of an iterator that reads from `cluster`, in a thread that ends with this generator."""
    loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, "trainjob")
    try:
        items = await loop.run_in_executor(thread, begin)
        while (item := await loop.run_in_executor(thread, next, items, None)) is not None:
            yield item
    finally:
        cluster.connection.interrupt()
        thread.shutdown(wait=False)
