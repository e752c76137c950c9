"""The interface of an experiment tracker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import TypeAdapter

from trainjob.api.training_status import TrackingStatus

STATUSES = TypeAdapter(list[TrackingStatus])
"""Format of the lines of JSON by which the tracking process reports to the driver."""

EndState = Literal["finished", "failed", "stopped"]
"""stopped: interrupted, and may continue."""


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run, or of a trial, at its beginning."""

    name: str
    key: str
    """Identifies the run in the tracker, before there is an id."""
    parameters: Mapping[str, str]
    """The spec: values by path."""
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Results:
    """Results of a run, or of a trial, at its end."""

    state: EndState
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Scores of the best checkpoint and figures of the summary."""
    data: Mapping[str, str] = field(default_factory=dict[str, str])
    """Digest of the rows of each set."""
    files: Sequence[Path] = ()
    """The report and the summary."""
    model: Path | None = None
    """Folder with the model, if it is to be registered."""


class Tracker(Protocol):
    """Writes runs to one tracker. Each method may raise any exception; it is then called again later, and must not
    write anything twice."""

    registers_models: bool
    rewrites: bool = False
    """Whether each process writes a run from its first record on; the tracker ignores the records that it has."""

    def begin(self, run: RunFacts, known: str, parent: str) -> tuple[str, str]:
        """Continues the tracker's run that has the id `known` or else `run.key`, or creates it. `parent` is the id of
        the search that a trial belongs to. `known` and `parent` may be empty. Returns id and address."""
        ...

    def log(self, run_id: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Writes records of `metrics.jsonl`."""
        ...

    def end(self, run_id: str, results: Results) -> None:
        """Writes the results, and ends the run; `begin` may continue it."""
        ...
