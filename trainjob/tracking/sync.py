"""Updates a run in a tracker from the run's folder."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

from trainjob.api import TrainJob
from trainjob.evaluation import parse_evaluation
from trainjob.runs.attempts import read_attempts
from trainjob.runs.files import EVALUATION, FITTED, METRICS, MORE_METRICS, REPORT, SPLIT, SUMMARY
from trainjob.runs.folder import flatten, to_dict
from trainjob.runs.history import read_history
from trainjob.runs.model import local_copy, model_folder
from trainjob.runs.summary import Summary, read_summary
from trainjob.runs.tracked import Tracked, read_tracked, write_tracked
from trainjob.runs.trials import Trial, read_trials, trial_folder
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder
from trainjob.tracking.tracker import EndState, Results, RunFacts, Tracker

RECORDS = 200
"""Records that are written at once; the cursor is kept after each batch."""
_STATE_OF_TRIAL: Mapping[str, EndState] = {"done": "finished", "stopped": "finished", "failed": "failed"}


class Sync:
    """Writes one run to one tracker."""

    def __init__(self, run: Folder, job: TrainJob, name: str, tracker: Tracker) -> None:
        """`name` is the tracker's."""
        self._run, self._job, self._name, self._tracker = run, job, name, tracker
        self._tracked = read_tracked(run).get(name) or Tracked(key=uuid4().hex)
        self._begun: set[str] = set()
        """Keys of the runs that this process has begun in the tracker."""
        self._sizes: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return self._tracked.url

    def write(self, state: EndState | None) -> None:
        """Writes everything new. `state` is how the run ended; None while it runs. Raises the errors of the tracker's
        client and of the storage; the next call continues."""
        summary = read_summary(self._run)
        if summary is not None and self._tracked.ended == "finished":
            return
        self._begin_run()
        self._write_trials(state)
        self._tracked = self._log(self._tracked, self._run)
        if summary is not None:
            state = "finished"
        if state is not None and self._tracked.ended != state:
            with self._results(state, summary) as results:
                self._tracker.end(self._tracked.id, results)
            self._keep(self._tracked.model_copy(update={"ended": state}))

    def _begin_run(self) -> None:
        attempts = read_attempts(self._run)
        metadata = self._job.metadata
        tags = {
            "trainjob.name": metadata.name,
            "trainjob.attempt": str(attempts.count if attempts else 1),
            "trainjob.version": version("trainjob"),
            "trainjob.folder": self._run.uri,
            "trainjob.namespace": metadata.namespace or "",
            "trainjob.uid": metadata.uid or "",
        }
        spec = flatten({name: part for name, part in to_dict(self._job)["spec"].items() if name != "tracking"})
        facts = RunFacts(
            metadata.name,
            self._tracked.key,
            {path: _text(value) for path, value in spec.items()},
            {name: value for name, value in tags.items() if value},
        )
        self._keep(self._begin(self._tracked, facts, ""))

    def _write_trials(self, state: EndState | None) -> None:
        if self._job.spec.tuning is None:
            return
        for trial in read_trials(self._run):
            tracked = self._tracked.trials.get(trial.number) or Tracked(key=uuid4().hex)
            ended = _STATE_OF_TRIAL.get(trial.state, state)
            if tracked.ended and tracked.ended == ended:
                continue
            self._keep_trial(trial, tracked)
            facts = RunFacts(
                f"{self._job.metadata.name}/trial-{trial.number}",
                tracked.key,
                {path: _text(value) for path, value in trial.parameters.items()},
                {"trainjob.trial": str(trial.number)},
            )
            tracked = self._begin(tracked, facts, self._tracked.id)
            self._keep_trial(trial, tracked)
            tracked = self._log(tracked, trial_folder(self._run, trial.number), trial)
            if ended is not None:
                best = {} if trial.value is None else {f"best/{self._job.spec.checkpoints.metric}": trial.value}
                self._tracker.end(tracked.id, Results(ended, best))
                self._keep_trial(trial, tracked.model_copy(update={"ended": ended}))

    def _begin(self, tracked: Tracked, facts: RunFacts, parent: str) -> Tracked:
        """Creates or continues the tracker's run, once in this process."""
        if tracked.key in self._begun:
            return tracked
        if not tracked.id and not parent:
            self._keep(tracked)  # the key first
        run_id, url = self._tracker.begin(facts, tracked.id, parent)
        self._begun.add(tracked.key)
        written = {"records": 0, "last": 0.0} if getattr(self._tracker, "rewrites", False) else {}
        return tracked.model_copy(update={"id": run_id, "url": url, "ended": "", **written})

    def _log(self, tracked: Tracked, folder: Folder, trial: Trial | None = None) -> Tracked:
        """Writes the new records of a run, or of a trial, and keeps how far it has come."""
        records = self._history(folder, tracked)
        for start in range(first_new(records, tracked), len(records), RECORDS):
            batch = records[start : start + RECORDS]
            self._tracker.log(tracked.id, batch)
            tracked = tracked.model_copy(update={"records": start + len(batch), "last": batch[-1].get("time", 0.0)})
            if trial is None:
                self._keep(tracked.model_copy(update={"trials": self._tracked.trials}))
            else:
                self._keep_trial(trial, tracked)
        return tracked if trial is not None else self._tracked

    def _history(self, folder: Folder, tracked: Tracked) -> list[dict[str, Any]]:
        """The records of a folder; none if no file has changed since all of them were written."""
        sizes = (folder.sizes().get(METRICS), (folder / MORE_METRICS).sizes())
        if self._sizes.get(folder.uri) == (sizes, tracked.records):
            return []
        records = read_history(folder)
        self._sizes[folder.uri] = (sizes, len(records))
        return records

    def _keep(self, tracked: Tracked) -> None:
        if tracked != self._tracked or self._name not in read_tracked(self._run):
            self._tracked = tracked
            write_tracked(self._run, read_tracked(self._run) | {self._name: tracked})

    def _keep_trial(self, trial: Trial, tracked: Tracked) -> None:
        self._keep(self._tracked.model_copy(update={"trials": self._tracked.trials | {trial.number: tracked}}))

    @contextmanager
    def _results(self, state: EndState, summary: Summary | None) -> Generator[Results]:
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_folder())
            files: list[Path] = []
            for name in (REPORT, SUMMARY) if summary is not None else ():
                if self._run.exists(name):
                    (folder / name).write_bytes(self._run.read(name))
                    files.append(folder / name)
            model = None
            if summary is not None and self._tracker.registers_models:
                model = stack.enter_context(local_copy(model_folder(self._run)))
            yield Results(state, self._figures(summary), self._data(), files, model)

    def _figures(self, summary: Summary | None) -> dict[str, float]:
        if summary is None:
            return {}
        figures = {f"seconds/{stage}": seconds for stage, seconds in summary.seconds.items()}
        figures |= {f"rows/{name}": float(rows) for name, rows in summary.rows.items()}
        figures |= {f"best/{name}": float(value) for name, value in summary.metrics.items()}
        if summary.parameters is not None:
            figures["parameters"] = float(summary.parameters)
        if self._run.exists(EVALUATION):
            for name, scores in parse_evaluation(self._job.spec.model.facts, self._run.read(EVALUATION)).items():
                figures |= {f"best/{metric}": value for metric, value in scores.as_metrics(name).items()}
        return figures

    def _data(self) -> dict[str, str]:
        if not self._run.exists(f"{FITTED}/{SPLIT}"):
            return {}
        return json.loads(self._run.read(f"{FITTED}/{SPLIT}")).get("contents", {})


def first_new(records: Sequence[Mapping[str, Any]], tracked: Tracked) -> int:
    """The index of the first record that is not written yet. A run that resumes from a checkpoint has dropped the
    records after it, and written others."""
    count = tracked.records
    if count <= len(records) and (count == 0 or records[count - 1].get("time", 0.0) == tracked.last):
        return count
    return next((index for index, record in enumerate(records) if record.get("time", 0.0) > tracked.last), len(records))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
