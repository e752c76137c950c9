"""Runs that have finished, with models that were never trained."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from trainjob.api import TrainJob
from trainjob.api.defaults import with_defaults
from trainjob.data import fit
from trainjob.models import build, save_model
from trainjob.runs.folder import begin
from trainjob.runs.summary import Hardware, Summary, TrainingWorkers
from trainjob.storage import Folder

TEXT = {
    "textClassifier": {
        "encoder": {"layers": 2, "hiddenSize": 32, "heads": 4, "vocabularySize": 400},
        "maxLength": 32,
        "dropout": 0.0,
    }
}
IMAGE = {"imageClassifier": {"cnn": {"channels": [4], "hidden": 1024}, "loss": {"binaryCrossEntropy": {}}}}


def train_job(kind: str, data: Path, **spec: Any) -> TrainJob:
    """On the sets in the folder `data`; `spec` are further fields."""
    ending = ".csv" if kind == "text" else ""
    dataset: dict[str, Any] = {name: {"uri": str(data / f"{name}{ending}")} for name in ("train", "test")}
    if kind == "text":
        dataset |= {"text": ["title", "body"], "label": "label"}
    model = {"model": TEXT if kind == "text" else IMAGE, "dataset": dataset, "baselines": {}}
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "run"}}
    return with_defaults(TrainJob.model_validate(document | {"spec": model | spec}))


def write_run(folder: Path, job: TrainJob) -> Folder:
    run = Folder(str(folder))
    begin(run, job)
    finish(run)
    if job.spec.model.classifier is None:
        return run
    fitted = fit(job.spec)
    fitted.save(run / "fitted")
    torch.manual_seed(0)
    module = build(job.spec.model, fitted.preprocessor)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)  # so that predictions differ from row to row
    save_model(module, fitted.preprocessor, Path(run.uri) / "model")
    return run


def finish(run: Folder) -> None:
    finished = Summary(
        name="run",
        started=datetime(2026, 1, 1, tzinfo=UTC),
        finished=datetime(2026, 1, 1, 1, tzinfo=UTC),
        workers=TrainingWorkers(count=1, device="cpu", threads=1),
        hardware=Hardware(cpu="a processor", cores=1, memory_gib=1.0),
    )
    run.write("summary.json", finished.model_dump_json(by_alias=True).encode())
