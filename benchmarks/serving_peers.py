"""Compares `trainjob serve` with FastAPI and LitServe, which serve the same model with transformers.

For each server: seconds from the command to the first answer; answers per second and the median time of one client that
sends one text after another; answers per second and the 99th percentile with many such clients. The servers run one
after another, in rounds, and share the machine with the clients. Without RUN, it trains the text example for one epoch.
LitServe is installed into a temporary folder.
"""

import argparse
import asyncio
import csv
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from serving import EXAMPLES, TEXTS, TRAINJOB, Client, trained
from uv import find_uv_bin

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
LITSERVE = "litserve==0.2.19"
MODEL = """
import sys
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

folder, port = sys.argv[1], int(sys.argv[2])

def load():
    return AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder).eval()

@torch.inference_mode()
def probabilities(tokenizer, model, texts):
    tokens = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    return model(**tokens).logits.softmax(-1).tolist()
"""
FASTAPI = f"""{MODEL}
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

app, (tokenizer, model) = FastAPI(), load()

class Question(BaseModel):
    texts: list[str]

@app.post("/predict")
def predict(question: Question):
    return {{"predictions": probabilities(tokenizer, model, question.texts)}}

uvicorn.run(app, port=port, log_level="warning")
"""
LITSERVE_SERVER = f"""{MODEL}
import litserve

class Model(litserve.LitAPI):
    def setup(self, device):
        self.tokenizer, self.model = load()

    def decode_request(self, request):
        return request["texts"][0]

    def predict(self, texts):
        return probabilities(self.tokenizer, self.model, texts)

    def encode_response(self, output):
        return {{"predictions": [output]}}

if __name__ == "__main__":
    api = Model(max_batch_size=64, batch_timeout=0.005)
    litserve.LitServer(api, accelerator="cpu").run(port=port, log_level="warning", generate_client_file=False)
"""


def command(server: str, run: str, port: int, folder: Path) -> list[str]:
    if server == "trainjob":
        return [*TRAINJOB, "serve", run, "--port", str(port)]
    script = folder / f"{server}_server.py"
    script.write_text({"FastAPI": FASTAPI, "LitServe": LITSERVE_SERVER}[server])
    return [sys.executable, str(script), f"{run}/model", str(port)]


@contextmanager
def serving(server: str, run: str, folder: Path, body: bytes) -> Generator[tuple[int, float]]:
    """The server's port, and the seconds until its first answer."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = os.environ | ({"PYTHONPATH": str(folder / "packages")} if server == "LitServe" else {})
    started = time.perf_counter()
    log = (folder / f"{server}.log").open("w")
    with subprocess.Popen(
        command(server, run, port, folder), env=environment, stdout=log, stderr=log, start_new_session=True
    ) as process:
        try:
            while not asyncio.run(_answers(port, body)):
                assert process.poll() is None, (folder / f"{server}.log").read_text()
                time.sleep(0.02)
            yield port, time.perf_counter() - started
        finally:
            process.terminate()
            process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # LitServe's processes stay otherwise, and take CPU


async def _answers(port: int, body: bytes) -> bool:
    try:
        client = await Client.connect(port)
        return await client.ask(body) == 200
    except (OSError, asyncio.IncompleteReadError):
        return False


async def times(port: int, bodies: Sequence[bytes], clients: int, seconds: float) -> list[float]:
    """Seconds of each answer to clients that send one request after another."""
    connected = [await Client.connect(port) for _ in range(clients)]
    taken: list[float] = []
    end = time.perf_counter() + seconds

    async def ask(client: Client) -> None:
        while (start := time.perf_counter()) < end:
            assert await client.ask(bodies[len(taken) % len(bodies)]) == 200
            taken.append(time.perf_counter() - start)

    await asyncio.gather(*map(ask, connected))
    return taken


def measure(server: str, run: str, folder: Path, bodies: Sequence[bytes], clients: int, seconds: float) -> list[float]:
    """First answer [s]; one client's answers/s and median [ms]; many clients' answers/s and 99th percentile [ms]."""
    with serving(server, run, folder, bodies[0]) as (port, first):
        asyncio.run(times(port, bodies, 1, 2))  # the first requests are slower
        one = asyncio.run(times(port, bodies, 1, seconds))
        many = asyncio.run(times(port, bodies, clients, seconds))
    return [
        first,
        len(one) / seconds,
        1000 * statistics.median(one),
        len(many) / seconds,
        1000 * float(np.percentile(many, 99)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run of examples/docstrings.yaml")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=64)
    arguments = parser.parse_args()
    with (EXAMPLES / "data" / "docstrings" / "test.csv").open(newline="") as file:
        texts = [row["docstring"] for row, _ in zip(csv.DictReader(file), range(TEXTS), strict=False)]
    bodies = [json.dumps({"texts": [text]}).encode() for text in texts]
    servers = ("trainjob", "FastAPI", "LitServe")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install = [find_uv_bin(), "pip", "install", "--quiet", "--python", sys.executable]
        own = ["--constraints", str(CONSTRAINTS), "--target", str(folder / "packages")]
        subprocess.run([*install, *own, LITSERVE], check=True)
        run = arguments.run or trained(name)
        found: dict[str, list[list[float]]] = {server: [] for server in servers}
        for _ in range(arguments.rounds):
            for server in servers:
                row = measure(server, run, folder, bodies, arguments.clients, arguments.seconds)
                found[server].append(row)
                print(server, *(f"{value:.1f}" for value in row), flush=True)
    print(f"| | first answer | 1 client: texts/s | p50 | {arguments.clients} clients: texts/s | p99 |")
    print("|---|---|---|---|---|---|")
    for server, rows in found.items():
        first, one, p50, many, p99 = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"| {server} | {first:.1f} s | {one:.0f} | {p50:.1f} ms | {many:.0f} | {p99:.0f} ms |")


if __name__ == "__main__":
    main()
