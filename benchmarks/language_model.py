"""Times a language model as a baseline: 1,000 rows at a server that answers after 200 ms, and a second time.

The server's limit is rows / concurrency * 200 ms.
"""

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from trainjob.api.baselines import LanguageModel
from trainjob.baselines.language_model.classify import classify
from trainjob.baselines.rows import Sampled
from trainjob.storage import Folder

SECONDS = 0.2
CLASSES = ["animal", "plant", "stone"]


def serve(port: "multiprocessing.Queue[int]", requests: Any) -> None:
    """Answers requests until stopped, and counts them."""
    message = {"role": "assistant", "content": json.dumps({"label": CLASSES[0]})}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
    head = {"id": "chat", "object": "chat.completion", "created": 0, "model": "tiny"}
    content = json.dumps(head | {"choices": choices, "usage": usage}).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay, as with real servers

        def do_POST(self) -> None:
            with requests.get_lock():
                requests.value += 1
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(SECONDS)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            self.wfile.write(head.encode() + content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class's name
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 100  # who finds the queue full tries again after a second

    server = Server(("127.0.0.1", 0), Handler)
    port.put(server.server_port)
    server.serve_forever()


@contextmanager
def slow_server() -> Generator[tuple[str, Any]]:
    """A server in its own process: its URL, and the number of requests so far."""
    context = multiprocessing.get_context("spawn")
    port, requests = context.Queue(), context.Value("q", 0)
    process = context.Process(target=serve, args=(port, requests), daemon=True)
    process.start()
    yield f"http://127.0.0.1:{port.get()}/v1", requests
    process.terminate()
    process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=16)
    arguments = parser.parse_args()
    labels = np.arange(arguments.rows) % len(CLASSES)
    texts = [f"Text {number}, which is about some {CLASSES[label]}." for number, label in enumerate(labels)]
    held = Sampled(texts, labels, np.arange(arguments.rows), arguments.rows)
    limit = -(-arguments.rows // arguments.concurrency) * SECONDS
    print("| | seconds | beside the limit | requests |\n|---|---|---|---|")
    with slow_server() as (address, requests), tempfile.TemporaryDirectory() as folder:
        model = LanguageModel(
            endpoint=address, model="tiny", concurrency=arguments.concurrency, max_requests=arguments.rows
        )
        for name in ("first time", "second time"):
            before, since = requests.value, time.perf_counter()
            classify(model, Folder(folder), CLASSES, held, held, seed=0)
            seconds = time.perf_counter() - since
            print(f"| {name} | {seconds:.2f} | {seconds / limit:.2f} | {requests.value - before} |", flush=True)


if __name__ == "__main__":
    main()
