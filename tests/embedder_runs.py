"""Embedders of texts in tests: their TrainJob, a step on several ranks, a short training and predictions of a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from ranks import run_on
from trainjob.api import TrainJobSpec
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.loaders import collate
from trainjob.models import build
from trainjob.models.scoring import tally_batches
from trainjob.predictor import Predictor
from trainjob.runs.contents import read_contents
from trainjob.storage import Folder


def embedder_spec(folder: Path, batch_size: int, **columns: Any) -> dict[str, Any]:
    """A small embedder of `train.csv` and `test.csv` in the folder."""
    encoder = {"layers": 1, "hiddenSize": 32, "heads": 2, "vocabularySize": 400}
    sets = {name: {"uri": str(folder / f"{name}.csv")} for name in ("train", "test")}
    return {
        "model": {"textEmbedder": {"maxLength": 16, "encoder": encoder}},
        "dataset": {**sets, **columns},
        "training": {"batchSize": batch_size},
    }


def _gradients(rank: int, ranks: int, spec: dict[str, Any], rows: np.ndarray) -> tuple[dict[str, torch.Tensor], float]:
    """The gradients of a step on these training rows, and the sum of this rank's losses."""
    job = TrainJobSpec.model_validate(spec)
    fitted = fit(job)
    torch.manual_seed(0)
    module = build(job.model, fitted.preprocessor).eval()
    own = rows[rank::ranks]
    examples = prepare_examples(job, fitted)["train"].take(own if len(own) else rows[:1])
    batch = collate(fitted.preprocessor, examples)
    batch = Batch(batch.inputs, batch.labels, is_real=len(own) > 0)
    model = DistributedDataParallel(module) if ranks > 1 else module
    objective: Any = type(fitted.preprocessor.target.objective(job, module))
    losses = objective(20.0, len(rows)).losses(model(**batch.inputs), batch) * batch.is_real
    (losses.sum() / (len(rows) / ranks)).backward()
    found = {name: parameter.grad for name, parameter in module.named_parameters() if parameter.grad is not None}
    return found, losses.sum().item()


def _gradients_on_a_rank(spec: dict[str, Any], rows: np.ndarray) -> tuple[dict[str, torch.Tensor], float]:
    return _gradients(distributed.get_rank(), distributed.get_world_size(), spec, rows)


def assert_same_step(ranks: int, spec: dict[str, Any], rows: np.ndarray) -> None:
    """Asserts that the losses and gradients of several ranks on these training rows are those of one."""
    expected, loss = _gradients(0, 1, spec, rows)
    found = run_on(ranks, _gradients_on_a_rank, spec, rows)
    assert sum(own for _, own in found) == pytest.approx(loss, rel=1e-4, abs=1e-6)
    for one, _ in found:
        assert one.keys() == expected.keys()
        for name, gradient in expected.items():
            torch.testing.assert_close(one[name], gradient, rtol=1e-3, atol=1e-5)


def scores_before_and_after(spec: dict[str, Any], steps: int) -> list[Any]:
    """Scores of the test rows before and after `steps` on all training rows."""
    job = TrainJobSpec.model_validate(spec)
    fitted = fit(job)
    torch.manual_seed(0)
    module = build(job.model, fitted.preprocessor)
    objective = fitted.preprocessor.target.objective(job, module)
    sets = {name: collate(fitted.preprocessor, each) for name, each in prepare_examples(job, fitted).items()}
    optimizer = torch.optim.AdamW(module.parameters(), 5e-3)
    scores: list[Any] = []
    for count in (0, steps):
        for _ in range(count):
            objective.losses(module(**sets["train"].inputs), sets["train"]).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        tally: Any = tally_batches(module, objective, [sets["test"]], torch.device("cpu"), torch.float32)
        scores.append(tally.scores())
    return scores


def predictions_of_test_rows(run: Folder) -> tuple[pa.Table, torch.Tensor]:
    """What training keeps of the test rows' predictions, and their vectors."""
    job, fitted = read_contents(run).job, Fitted.load(run / "fitted")
    module = Predictor.load(run.uri).model
    batch = collate(fitted.preprocessor, prepare_examples(job.spec, fitted)["test"])
    batch = Batch(batch.inputs, batch.labels, rows=np.arange(len(batch.labels)))
    objective = fitted.preprocessor.target.objective(job.spec, module)
    with torch.inference_mode():
        vectors = module(**batch.inputs)
        kept = objective.predictions(vectors, batch)
    assert kept is not None
    return fitted.preprocessor.target.decoded(kept), vectors
