"""A cache of a run's answers, in its folder, so that no question is asked twice."""

import hashlib
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from trainjob.baselines.language_model.prompt import Message
from trainjob.runs.files import PREDICTIONS
from trainjob.storage import Folder

FILE = "answers.jsonl"
SECONDS_BETWEEN_UPLOADS = 5.0


@dataclass(frozen=True)
class Answer:
    """An answer of the model and its cost."""

    text: str
    input_tokens: int
    output_tokens: int


def key(endpoint: str, model: str, messages: Sequence[Message]) -> str:
    """Identifies a question to a model."""
    return hashlib.sha256(json.dumps([endpoint, model, list(messages)]).encode()).hexdigest()


class AnswerCache:
    """`predictions/answers.jsonl`: one answer in each line. On disk, each answer is written at once; on object storage,
    every few seconds and when `close` is called."""

    def __init__(self, run: Folder) -> None:
        self._run, self._lock = run, threading.Lock()
        self._file = None if "://" in run.uri else Path(run.uri) / PREDICTIONS / FILE
        self._lines: list[str] = []
        self._known: dict[str, Answer] = {}
        self._uploaded = time.monotonic()
        name = f"{PREDICTIONS}/{FILE}"
        for line in run.read(name).decode().splitlines() if run.exists(name) else []:
            self._take(line)

    def get(self, key: str) -> Answer | None:
        return self._known.get(key)

    def add(self, key: str, answer: Answer) -> None:
        line = json.dumps({"key": key, **asdict(answer)}, ensure_ascii=True)
        with self._lock:
            self._known[key] = answer
            self._lines.append(line)
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with self._file.open("a") as file:
                    file.write(f"\n{line}\n")  # what a kill has torn stays a line of its own
            elif time.monotonic() - self._uploaded > SECONDS_BETWEEN_UPLOADS:
                self._upload()

    def close(self) -> None:
        with self._lock:
            if self._file is None:
                self._upload()

    def _upload(self) -> None:
        self._run.write(f"{PREDICTIONS}/{FILE}", "".join(f"{line}\n" for line in self._lines).encode())
        self._uploaded = time.monotonic()

    def _take(self, line: str) -> None:
        """Reads a line. The question of a line that a kill has cut off is asked again."""
        try:
            content = json.loads(line)
            name = content.pop("key")
            self._known[name] = Answer(**content)
        except (ValueError, TypeError, KeyError, AttributeError):
            return
        self._lines.append(line)
