"""Runs as training leaves them, with weights that were never trained."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
import yaml
from pydantic import BaseModel

from trainjob.api import TrainJob
from trainjob.data import Fitted, fit
from trainjob.driver.predicted_sources import add_sources
from trainjob.models import build, save_model
from trainjob.runs.contents import read_contents
from trainjob.runs.predictions import write_predictions
from trainjob.runs.summary import Hardware, Summary, TrainingWorkers
from trainjob.storage import Folder


def make_run(folder: Path, spec: dict[str, Any]) -> Path:
    job = TrainJob.model_validate(
        {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "run"}, "spec": spec}
    )
    fitted = fit(job.spec)
    fitted.save(Folder(str(folder)) / "fitted")
    document = job.model_dump(mode="json", by_alias=True, exclude_none=True)
    (folder / "trainjob.yaml").write_text(yaml.safe_dump(document))
    save_untrained(job, fitted, folder / "model")
    return folder


def save_untrained(job: TrainJob, fitted: Fitted, folder: Path) -> None:
    """Writes a model into `folder`."""
    torch.manual_seed(0)
    module = build(job.spec.model, fitted.preprocessor)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)  # so that predictions differ from row to row
    save_model(module, fitted.preprocessor, folder)


def finish(run: Folder) -> None:
    """Writes the summary that a run has when it has finished."""
    started = datetime.now(UTC)
    finished = Summary(
        name="run",
        started=started,
        finished=started + timedelta(hours=1),
        workers=TrainingWorkers(count=1, device="cpu", threads=1),
        hardware=Hardware(cpu="a processor", cores=1, memory_gib=1.0),
    )
    run.write("summary.json", finished.model_dump_json(by_alias=True).encode())


def finish_scored(run: Folder, predictions: pa.Table, scores: BaseModel) -> None:
    """Writes what a run has when its model has predicted the test rows, with these scores."""
    write_predictions(run, "model", predictions)
    add_sources(read_contents(run).job.spec, run, Fitted.load(run / "fitted"))
    run.write("evaluation.json", f'{{"validation": null, "test": {scores.model_dump_json(by_alias=True)}}}'.encode())
    finish(run)
