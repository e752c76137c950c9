"""Weights & Biases: writes runs through wandb's own client, online or, with WANDB_MODE=offline, to its local files.

The client uploads in the background and does not report what has arrived. So each process writes a run from its first
record on: a server ignores the steps that it already has, and in offline mode each process writes a folder with the
whole run. The id of a run whose `init` has failed stays in use until `teardown`.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import wandb

from trainjob.api.tracking import WandB
from trainjob.errors import UserError
from trainjob.runs.history import reported_values
from trainjob.tracking.tracker import Results, RunFacts

_TIMEOUT_SECONDS = 20.0


def open_tracker(settings: WandB, job_name: str) -> "WandBTracker":
    offline = os.environ.get("WANDB_MODE") == "offline"
    if offline and "KUBERNETES_SERVICE_HOST" in os.environ and "WANDB_DIR" not in os.environ:
        raise UserError("offline, the run would be lost with this pod: set WANDB_DIR to a folder on a volume")
    wandb.teardown()  # ends runs that a failed tracker has left open
    return WandBTracker(settings, job_name)


class WandBTracker:
    registers_models = False
    rewrites = True

    def __init__(self, settings: WandB, job_name: str) -> None:
        self._job_name = job_name
        self._project, self._entity = settings.project or job_name, settings.entity
        options: dict[str, Any] = {} if settings.uri is None else {"base_url": settings.uri}
        self._settings = wandb.Settings(
            console="off",
            disable_code=True,
            disable_git=True,
            finish_timeout=_TIMEOUT_SECONDS,
            finish_timeout_raises=True,
            init_timeout=_TIMEOUT_SECONDS,
            silent=True,
            x_disable_stats=True,
            **options,
        )
        self._runs: dict[str, wandb.Run] = {}

    def begin(self, run: RunFacts, known: str, parent: str) -> tuple[str, str]:
        parameters = {path: _value(text) for path, text in run.parameters.items()}
        begun = wandb.init(
            id=run.key,
            name=run.name,
            project=self._project,
            entity=self._entity,
            group=self._job_name if parent else None,
            config={**parameters, **run.tags, **({"trainjob.parent": parent} if parent else {})},
            resume="allow",
            reinit="create_new",
            settings=self._settings,
        )
        self._runs[run.key] = begun
        return run.key, f"file://{Path(begun.dir).parent}" if begun.offline else begun.url or ""

    def log(self, run_id: str, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            values = {**reported_values(dict(record)), "_timestamp": record.get("time", 0.0)}
            self._runs[run_id].log(values, step=record["step"])

    def end(self, run_id: str, results: Results) -> None:
        run = self._runs[run_id]
        run.summary.update(dict(results.metrics))
        run.config.update({"state": results.state, "data": dict(results.data)}, allow_val_change=True)
        for path in results.files:
            copy = shutil.copy(path, run.dir)  # `save` would link a file of another folder, which is temporary
            run.save(copy, base_path=run.dir, policy="now")
        run.finish(exit_code=0 if results.state == "finished" else 1)


def _value(text: str) -> Any:
    """A parameter as a number where it is one, so that charts order it."""
    try:
        return json.loads(text)
    except ValueError:
        return text
