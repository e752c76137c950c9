"""Measures `trainjob serve` under load with the text example's model, compared with the Predictor in process on one
thread.

Without RUN, it trains the text example for one epoch. It then measures, one after another: 50 requests/s at even
intervals, each with one text and timed from its scheduled start; one client that sends requests continuously; many such
clients; and a burst of simultaneous clients. The effect of batching is compared with one client, and with as many
clients of a server that computes one row at a time. The clients share the machine with the server.
"""

import argparse
import asyncio
import csv
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import numpy as np

from trainjob.serving.app import CPU_ROWS
from trainjob.serving.config import BATCH_ROWS

EXAMPLES = Path(__file__).parent.parent / "examples"
TRAINJOB = [str(Path(sys.executable).parent / "trainjob")]
TEXTS = 500
SERVE = """
import sys
from trainjob.serving.config import Served
from trainjob.serving.server import serve_here
run, port, rows = sys.argv[1:]
served = Served(folder=run, name="benchmark", batch_rows=int(rows))
serve_here(served, "127.0.0.1", int(port), lambda: print("http://", file=sys.stderr, flush=True))
"""
"""A program like `trainjob serve`, with a given maximum batch size."""
RATE = 50
"""Requests per second."""
MIB = 2**20


class Client:
    """A persistent connection, at a tenth of the cost of an HTTP library."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, body: bytes) -> int:
        """The status of the complete answer; without a body, of a health check."""
        request = "POST /predict" if body else "GET /healthz"
        lines = [f"{request} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
        self._writer.write(head.encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: (\d+)", answer)
        assert length is not None, answer
        await self._reader.readexactly(int(length[1]))
        return int(answer[9:12])

    def close(self) -> None:
        self._writer.close()


def own_times(run: str, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, float]:
    """Seconds of the Predictor on one thread: for each text, back to back; for each text, at the rate RATE; and per
    text in batches of the server's size."""
    import torch

    from trainjob import Predictor

    torch.set_num_threads(1)
    predictor = Predictor.load(run)
    predictor.predict_proba(texts)  # the first rows are slower
    times: dict[int, list[float]] = {0: [], RATE: []}
    for rate, taken in times.items():
        for text in texts:
            start = time.perf_counter()
            predictor.predict_proba([text])
            taken.append(time.perf_counter() - start)
            if rate:
                time.sleep(max(0.0, 1 / rate - taken[-1]))
    start = time.perf_counter()
    predictor.predict_proba(texts, CPU_ROWS)
    return np.array(times[0]), np.array(times[RATE]), (time.perf_counter() - start) / len(texts)


@contextmanager
def served(run: str, batch_rows: int = BATCH_ROWS) -> Generator[int]:
    """The port of a server of the run with the given maximum batch size."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", SERVE, run, str(port), str(batch_rows)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if "http://" in line:
                break
        assert server.poll() is None, "the server has not started"
        try:
            yield port
        finally:
            server.terminate()
            server.communicate(timeout=120)


async def steady(port: int, bodies: Sequence[bytes], rate: int, seconds: float) -> tuple[np.ndarray, int]:
    """Seconds from each request's scheduled time to its answer; the number of answers other than 200."""
    free: asyncio.Queue[Client] = asyncio.Queue()
    for _ in range(2 * rate):
        free.put_nowait(await Client.connect(port))
    start = time.perf_counter() + 0.1
    times: list[float] = []
    statuses: Counter[int] = Counter()

    async def ask(due: float, body: bytes) -> None:
        client = await free.get()
        statuses[await client.ask(body)] += 1
        times.append(time.perf_counter() - due)
        free.put_nowait(client)

    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * seconds)):
            due = start + number / rate
            await asyncio.sleep(due - time.perf_counter())
            group.create_task(ask(due, bodies[number % len(bodies)]))
    return np.array(times), sum(statuses.values()) - statuses[200]


async def throughput(port: int, bodies: Sequence[bytes], clients: int, seconds: float) -> float:
    """Answers per second to the given number of clients, each of which sends its next request after an answer."""
    answered = 0
    connected = [await Client.connect(port) for _ in range(clients)]
    end = time.perf_counter() + seconds

    async def ask(client: Client) -> None:
        nonlocal answered
        while time.perf_counter() < end:
            assert await client.ask(bodies[answered % len(bodies)]) == 200
            answered += 1

    await asyncio.gather(*map(ask, connected))
    return answered / seconds


async def burst(port: int, bodies: Sequence[bytes], clients: int) -> tuple[Counter[int], float, int]:
    """Answers by status; seconds until the last one; the maximum displacement between request order and answer
    order."""
    connected = [await Client.connect(port) for _ in range(clients)]
    order: list[int] = []
    statuses: Counter[int] = Counter()

    async def ask(number: int, client: Client) -> None:
        status = await client.ask(bodies[number % len(bodies)])
        statuses[status] += 1
        if status == 200:
            order.append(number)

    start = time.perf_counter()
    await asyncio.gather(*(ask(number, client) for number, client in enumerate(connected)))
    seconds = time.perf_counter() - start
    ranks = np.argsort(np.argsort(order))
    return statuses, seconds, int(np.abs(ranks - np.arange(len(ranks))).max(initial=0))


def memory(port: int) -> float:
    """Memory of the replica in MiB."""
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        found = re.search(r"^process_resident_memory_bytes (\S+)", answer.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1]) / MIB


def trained(folder: str) -> str:
    """The folder of a run of the text example."""
    options = ["--set", "spec.training.epochs=1", "--set", "spec.baselines={}", "--set", f"spec.storage.uri={folder}"]
    command = [*TRAINJOB, "run", str(EXAMPLES / "docstrings.yaml"), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return f"{folder}/docstrings"


def measure(run: str, seconds: float, clients: int) -> None:
    with (EXAMPLES / "data" / "docstrings" / "test.csv").open(newline="") as file:
        texts = [row["docstring"] for row, _ in zip(csv.DictReader(file), range(TEXTS), strict=False)]
    bodies = [json.dumps({"texts": [text]}).encode() for text in texts]
    own, paced, batched = own_times(run, texts)
    with served(run) as port:
        asyncio.run(throughput(port, bodies, 1, 2))  # the first requests are slower
        times, bad = asyncio.run(steady(port, bodies, RATE, seconds))
        single = asyncio.run(throughput(port, bodies, 1, seconds / 4))
        many = asyncio.run(throughput(port, bodies, clients, seconds / 4))
        empty = asyncio.run(throughput(port, [b""], clients, seconds / 4))
        before = memory(port)
        bursts = [asyncio.run(burst(port, bodies, 1000)) for _ in range(3)]
        after = memory(port)
    with served(run, 1) as port:
        asyncio.run(throughput(port, bodies, 1, 2))
        unbatched = asyncio.run(throughput(port, bodies, clients, seconds / 4))
    p50, p99 = np.percentile(times, [50, 99])
    paced_p50, paced_p99 = np.percentile(paced, [50, 99])
    print("| figure | aim | measured | |\n|---|---|---|---|")
    _show("the Predictor on one thread, one text after the other: mean", "", _ms(own.mean()))
    _show(f"... {RATE} a second: p50, p99", "", _ms(paced_p50, paced_p99))
    _show(
        f"... in batches of {CPU_ROWS}: a text; beside one by one", "", f"{_ms(batched)}; {own.mean() / batched:.2f} x"
    )
    title = f"{RATE} requests a second for {seconds:g} s"
    _show(f"{title}: answers other than 200", "0", f"{bad} of {len(times):,}", bad == 0)
    _show("... p50, p99, longest", "", _ms(p50, p99, times.max()))
    _show("... p99 beside the Predictor's at that pace", "<= 3 x", f"{p99 / paced_p99:.2f} x", p99 <= 3 * paced_p99)
    _show("... and beside its mean, one after the other", "", f"{p99 / own.mean():.2f} x")
    _show("one client, one text after the other: texts a second", "", f"{single:.0f}")
    _show(f"{clients} clients: texts a second", "", f"{many:.0f}")
    _show("... beside one client", ">= 3 x", f"{many / single:.2f} x", many >= 3 * single)
    title = "... beside as many clients of a server that computes one row at a time"
    _show(title, ">= 3 x", f"{many / unbatched:.2f} x ({unbatched:.0f})", many >= 3 * unbatched)
    limit = 1 / (1 / empty + batched)
    _show("... requests that need no model; with what a text takes in a batch", "", f"{empty:.0f}; {limit:.0f}")
    for statuses, took, displaced in bursts:
        by_status = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
        told = set(statuses) <= {200, 429, 503}
        _show("a burst of 1,000: answers, by status", "200, 429 or 503", f"{by_status} in {took:.2f} s", told)
        _show("... most places out of order", "", f"{displaced}")
    _show("memory of the replica before and after the bursts", "", f"{before:.0f} MiB, {after:.0f} MiB")


def _show(figure: str, aim: str, measured: str, is_met: bool | None = None) -> None:
    print(f"| {figure} | {aim} | {measured} | {'' if is_met is None else 'met' if is_met else 'missed'} |")


def _ms(*seconds: float) -> str:
    return ", ".join(f"{1000 * each:.1f} ms" for each in seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run of examples/docstrings.yaml")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments.run or trained(folder), arguments.seconds, arguments.clients)


if __name__ == "__main__":
    main()
