"""Runs as training leaves them, with weights that were never trained."""

from pathlib import Path
from typing import Any

import torch
import yaml

from trainjob.api import TrainJob
from trainjob.data import fit
from trainjob.models import build, save_model
from trainjob.storage import Folder


def make_run(folder: Path, spec: dict[str, Any]) -> Path:
    job = TrainJob.model_validate(
        {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "run"}, "spec": spec}
    )
    fitted = fit(job.spec)
    fitted.save(Folder(str(folder)) / "fitted")
    document = job.model_dump(mode="json", by_alias=True, exclude_none=True)
    (folder / "trainjob.yaml").write_text(yaml.safe_dump(document))
    torch.manual_seed(0)
    module = build(job.spec.model, fitted.preprocessor)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)  # so that predictions differ from row to row
    save_model(module, fitted.preprocessor, folder / "model")
    return folder
