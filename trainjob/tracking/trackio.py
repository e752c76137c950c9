"""Trackio: writes rows to a server or to the local store. Both ignore a row whose `log_id` they have.

`trackio.init` and `log` write in the background, do not confirm delivery, and identify runs by their name alone.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from httpx import HTTPStatusError
from trackio.remote_client import RemoteClient
from trackio.sqlite_storage import SQLiteStorage
from trackio.utils import serialize_values

from trainjob.api.tracking import Trackio
from trainjob.errors import UserError
from trainjob.runs.history import reported_values
from trainjob.tracking.tracker import Results, RunFacts


class _Row(NamedTuple):
    metrics: Mapping[str, Any]
    step: int | None
    """None: after the last one."""
    time: float
    """Seconds since the epoch. A server stores when a row has arrived instead."""
    log_id: str


class _Begun(NamedTuple):
    name: str
    config: dict[str, Any]


def open_tracker(settings: Trackio, job_name: str) -> "TrackioTracker":
    if settings.uri is None and "KUBERNETES_SERVICE_HOST" in os.environ and "TRACKIO_DIR" not in os.environ:
        raise UserError(
            "without a uri, Trackio's store would be lost with this pod: give the uri of a server, or set TRACKIO_DIR "
            "to a folder on a volume"
        )
    return TrackioTracker(settings, job_name)


class TrackioTracker:
    registers_models = False

    def __init__(self, settings: Trackio, job_name: str) -> None:
        self._uri, self._job_name = settings.uri, job_name
        self._project = settings.project or job_name
        SQLiteStorage.validate_project_name(self._project)
        self._client: RemoteClient | None = None
        if settings.uri is not None:
            token = os.environ.get("TRACKIO_WRITE_TOKEN")
            self._client = RemoteClient(settings.uri, write_token=token, httpx_kwargs={"timeout": 20})
        self._begun: dict[str, _Begun] = {}

    def begin(self, run: RunFacts, known: str, parent: str) -> tuple[str, str]:
        config = {**run.parameters, **run.tags, "_Group": self._job_name if parent else None}
        self._begun[run.key] = _Begun(run.name, config)
        self._write(run.key, [_Row({}, 0, datetime.now().timestamp(), f"{run.key} begin")], state="running")
        if self._uri is not None:
            return run.key, f"{self._uri.rstrip('/')}/?project={self._project}"
        return run.key, f"file://{SQLiteStorage.get_project_db_path(self._project)}"

    def log(self, run_id: str, records: Sequence[Mapping[str, Any]]) -> None:
        rows = [
            _Row(
                reported_values(dict(record)),
                record["step"],
                record.get("time", 0.0),
                f"{run_id} {record['kind']} {record['step']} {record.get('time', 0.0)}",
            )
            for record in records
        ]
        self._write(run_id, rows, state="running")

    def end(self, run_id: str, results: Results) -> None:
        row = _Row(results.metrics, None, datetime.now().timestamp(), f"{run_id} {results.state}")
        self._write(run_id, [row], state=results.state, data=dict(results.data))

    def _write(self, run_id: str, rows: Sequence[_Row], **facts: Any) -> None:
        name, config = self._begun[run_id]
        metrics = [serialize_values(row.metrics) for row in rows]
        config = config | facts
        if self._client is not None:
            entries = [
                {
                    "project": self._project,
                    "run": name,
                    "run_id": run_id,
                    "metrics": values,
                    "step": row.step,
                    "log_id": row.log_id,
                }
                for row, values in zip(rows, metrics, strict=True)
            ]
            entries[0]["config"] = config
            try:
                self._client.predict(api_name="/bulk_log", logs=entries, hf_token=None)
            except HTTPStatusError as error:  # whose own message lacks the server's
                raise UserError(f"{self._uri} answers {error.response.status_code}: {error.response.text}") from None
            return
        SQLiteStorage.bulk_log(
            self._project,
            name,
            metrics,
            [row.step for row in rows],
            [datetime.fromtimestamp(row.time, UTC).isoformat() for row in rows],
            config,
            [row.log_id for row in rows],
            run_id=run_id,
        )
