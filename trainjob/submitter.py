"""Submits a command to a Ray cluster and follows its log, in a RayJob's submitter pod.

`python -m trainjob.submitter COMMAND`, in the environment that KubeRay gives that pod. KubeRay's own command runs `ray
job status`, `submit` and `logs` one after the other, each of which first imports Ray for seconds.

Operators of other versions run this command in images with this version, so its name and arguments stay as they are.
"""

import asyncio
import os
import signal
import sys
import time

import aiohttp

from trainjob.errors import TransientError

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
HEAD_SECONDS = 600.0
"""How long to wait for a head that does not answer or does not accept the job."""
POLL_SECONDS = 1.0
QUIET_SECONDS = 30.0
"""After this time without a line, the head's status is requested: the connection to a node that is gone stays open, and
Ray's dashboard answers no WebSocket pings."""


class SubmittedJobs:
    """The jobs of a Ray cluster, by the API of its dashboard:
    https://docs.ray.io/en/latest/cluster/running-applications/job-submission/rest.html. Raises aiohttp's errors, and
    TransientError if the API refuses a request."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def status(self, job: str) -> str | None:
        """The job's status; None if Ray does not know the job."""
        async with self._session.get(f"/api/jobs/{job}") as answer:
            if answer.status == 404:
                return None
            await _check(answer)
            return (await answer.json())["status"]

    async def submit(self, job: str, command: str) -> None:
        async with self._session.post("/api/jobs/", json={"submission_id": job, "entrypoint": command}) as answer:
            await _check(answer)

    async def log(self, job: str) -> str:
        async with self._session.get(f"/api/jobs/{job}/logs") as answer:
            await _check(answer)
            return (await answer.json())["logs"]

    async def follow(self, job: str, printed: int) -> int:
        """Prints the log from its character `printed` on, until Ray ends it, and returns how many characters it has
        had. Raises TransientError if the connection breaks."""
        seen = 0
        path = f"/api/jobs/{job}/logs/tail"
        async with self._session.ws_connect(path, max_msg_size=0) as log:
            while True:
                try:
                    message = await log.receive(QUIET_SECONDS)
                except TimeoutError:
                    await self.status(job)
                    continue
                if message.type is not aiohttp.WSMsgType.TEXT:
                    break
                print(message.data[max(0, printed - seen) :], end="", flush=True)
                seen += len(message.data)
        if log.close_code == aiohttp.WSCloseCode.ABNORMAL_CLOSURE:
            raise TransientError("the connection to the head broke off")
        return max(printed, seen)


async def _check(answer: aiohttp.ClientResponse) -> None:
    if 400 <= answer.status < 500:  # a retry would get the same answer
        raise TransientError(f"{answer.url}: {answer.status} {answer.reason}: {(await answer.text())[-1000:].strip()}")
    answer.raise_for_status()


async def run(address: str, token: str | None, job: str, command: str) -> None:
    """Submits `command` as `job`, unless Ray has the job already, and follows its log until it has ended.

    Raises TransientError if the head does not accept the job, or is lost.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=60, connect=5)
    async with aiohttp.ClientSession(f"http://{address}", headers=headers, timeout=timeout) as session:
        jobs = SubmittedJobs(session)
        await _submit(jobs, job, command)
        try:
            status = await end_of(jobs, job)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise TransientError(f"the head at {address} was lost: {error}") from error
    print(f"job {job}: {status}")


async def _submit(jobs: SubmittedJobs, job: str, command: str) -> None:
    """Submits the job. An earlier submitter may have done so, and a head that was just created may not be ready."""
    deadline, shown = time.monotonic() + HEAD_SECONDS, ""
    while True:
        try:
            if await jobs.status(job) is None:
                await jobs.submit(job, command)
            return
        except (aiohttp.ClientError, TimeoutError) as error:
            why = str(error) or type(error).__name__
        if time.monotonic() > deadline:
            raise TransientError(f"the head has not accepted the job for {HEAD_SECONDS:.0f} s: {why}")
        if why != shown:
            print(f"waits for the head: {why}", flush=True)
            shown = why
        await asyncio.sleep(POLL_SECONDS)


async def end_of(jobs: SubmittedJobs, job: str) -> str:
    """Follows the log until the job ends, and returns its status. The log may end while the job continues."""
    printed = 0
    while True:
        printed = await jobs.follow(job, printed)
        status = await jobs.status(job)
        if status is None:
            raise TransientError(f"the head does not know the job {job} any more")
        if status in ENDED:
            await _print_rest(jobs, job, printed)
            return status
        await asyncio.sleep(POLL_SECONDS)


async def _print_rest(jobs: SubmittedJobs, job: str, printed: int) -> None:
    """Prints the log from character `printed` on: Ray stops following at a line of more than 4 MiB. If the log cannot
    be fetched, only a message says so, because the job's end is known."""
    try:
        print((await jobs.log(job))[printed:], end="")
        return
    except aiohttp.ClientResponseError as error:  # Ray answers 500 if the log is not UTF-8
        why = f"{error.status} {error.message}"
    except (aiohttp.ClientError, TimeoutError, TransientError) as error:
        why = str(error) or type(error).__name__
    print(f"Ray does not give the end of the log: {why}")


def main() -> None:
    [command] = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))  # a container's first process ignores it
    given = os.environ
    try:
        asyncio.run(
            run(given["RAY_DASHBOARD_ADDRESS"], given.get("RAY_AUTH_TOKEN"), given["RAY_JOB_SUBMISSION_ID"], command)
        )
    except TransientError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
