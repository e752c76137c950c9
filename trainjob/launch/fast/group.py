"""Local workers that train together: what the driver, the fork server and the workers know of them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True)
class Group:
    """What the driver asks the fork server to start."""

    folder: str
    """Of the files below."""
    environments: list[dict[str, str]]
    """Of each worker in order of rank, besides the server's own."""

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        return cls(**json.loads(line))


def task_file(folder: Path) -> Path:
    """The pickled function that every worker calls."""
    return folder / "task.pickle"


def log_file(folder: Path, rank: int) -> Path:
    """What a worker prints."""
    return folder / f"worker-{rank}.log"


def result_file(folder: Path, rank: int) -> Path:
    """The pickled (what the function returned, what it raised); missing where the process died."""
    return folder / f"worker-{rank}.result"
