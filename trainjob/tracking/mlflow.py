"""MLflow: writes runs by calls of the client that name the run's id, so that no state of this process matters."""

import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # the caller retries
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from trainjob.api.tracking import MLflow
from trainjob.runs.history import reported_values
from trainjob.tracking.tracker import Results, RunFacts

KEY = "trainjob.key"
_STATES = {"finished": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}
_REFUSED = re.compile(r"[^\w\-. :/]", re.ASCII)
MAX_NAME_CHARACTERS, MAX_VALUE_CHARACTERS, MAX_TAG_CHARACTERS = 250, 6000, 5000
BATCH = 500
"""Metrics in one request."""


def open_tracker(settings: MLflow, job_name: str) -> "MLflowTracker":
    return MLflowTracker(settings, job_name)


class MLflowTracker:
    def __init__(self, settings: MLflow, job_name: str) -> None:
        self._settings = settings
        self._client = MlflowClient(settings.uri, settings.uri)
        self._experiment_name = settings.experiment or job_name
        self.registers_models = settings.register_ is not None

    def begin(self, run: RunFacts, known: str, parent: str) -> tuple[str, str]:
        experiment = self._experiment()
        tags = {KEY: run.key, **run.tags, **({"mlflow.parentRunId": parent} if parent else {})}
        run_id = known or self._find(experiment, run.key)
        if not run_id:
            run_id = self._client.create_run(experiment, tags=tags, run_name=run.name).info.run_id
        found = self._client.get_run(run_id)
        if found.info.lifecycle_stage == "deleted":
            self._client.restore_run(run_id)
        parameters = {name_of(path): value[:MAX_VALUE_CHARACTERS] for path, value in run.parameters.items()}
        kept = found.data.params
        new = [Param(name, value) for name, value in parameters.items() if name not in kept]
        changed = {f"changed.{name}": value for name, value in parameters.items() if kept.get(name, value) != value}
        for start in range(0, len(new), 100):  # the most that a server takes at once
            self._client.log_batch(run_id, params=new[start : start + 100])
        self._client.log_batch(
            run_id,
            tags=[
                RunTag(name[:MAX_NAME_CHARACTERS], value[:MAX_TAG_CHARACTERS])
                for name, value in (tags | changed).items()
            ],
        )
        self._client.update_run(run_id, status="RUNNING")
        return run_id, f"{self._settings.uri.rstrip('/')}/#/experiments/{found.info.experiment_id}/runs/{run_id}"

    def log(self, run_id: str, records: Sequence[Mapping[str, Any]]) -> None:
        metrics = [
            Metric(name_of(name), float(value), int(record.get("time", 0.0) * 1000), int(record["step"]))
            for record in records
            for name, value in reported_values(dict(record)).items()
            if not math.isinf(value)  # MLflow would keep the largest finite number, as the best of all
        ]
        for start in range(0, len(metrics), BATCH):
            self._log(run_id, metrics[start : start + BATCH])

    def end(self, run_id: str, results: Results) -> None:
        values = {name_of(name): value for name, value in results.metrics.items() if math.isfinite(value)}
        if values:
            now = self._client.get_run(run_id).data.metrics
            changed = {name: value for name, value in values.items() if now.get(name) != value}
            for name, value in changed.items():
                self._client.log_metric(run_id, name, value)
        if results.data:
            inputs = [
                DatasetInput(
                    Dataset(name=set_name, digest=digest, source_type="code", source="{}"),
                    [InputTag("mlflow.data.context", set_name)],
                )
                for set_name, digest in results.data.items()
            ]
            self._client.log_inputs(run_id, datasets=inputs)
        self._client.set_terminated(run_id, status=_STATES[results.state])
        for path in results.files:
            self._client.log_artifact(run_id, str(path))
        if results.model is not None:
            self._client.log_artifacts(run_id, str(results.model), "model")
            self._register(run_id)

    def _experiment(self) -> str:
        found = self._client.get_experiment_by_name(self._experiment_name)
        if found is None:
            try:
                return self._client.create_experiment(self._experiment_name)
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
                return self._experiment()  # another run has just created it
        if found.lifecycle_stage == "deleted":
            raise ValueError(f"the experiment {self._experiment_name} is deleted: restore it, or name another one")
        return found.experiment_id

    def _find(self, experiment: str, key: str) -> str:
        found = self._client.search_runs([experiment], f"tags.`{KEY}` = '{key}'", max_results=1)
        return found[0].info.run_id if found else ""

    def _log(self, run_id: str, metrics: list[Metric]) -> None:
        """Writes metrics. Splits a request that is too large for the server, or for a proxy in front of it."""
        try:
            self._client.log_batch(run_id, metrics=metrics)
        except MlflowException as error:
            # The client knows only some statuses: of 413, `get_http_status_code()` is 500.
            if "error code 413" not in str(error) or len(metrics) == 1:
                raise
            for half in (metrics[: len(metrics) // 2], metrics[len(metrics) // 2 :]):
                self._log(run_id, half)

    def _register(self, run_id: str) -> None:
        name = self._settings.register_
        assert name is not None
        try:
            self._client.create_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
        versions = self._client.search_model_versions(f"run_id = '{run_id}'")
        if all(version.name != name for version in versions):
            self._client.create_model_version(name, f"runs:/{run_id}/model", run_id, await_creation_for=0)


def name_of(name: str) -> str:
    """A name that MLflow accepts: letters, digits and `_-. :/`. A digest distinguishes names that had to be changed."""
    plain = _REFUSED.sub("_", name)
    if plain == name and len(name) <= MAX_NAME_CHARACTERS:
        return name
    return f"{plain[: MAX_NAME_CHARACTERS - 7]}_{hashlib.blake2b(name.encode(), digest_size=3).hexdigest()}"
