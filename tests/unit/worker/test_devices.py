"""GPUs that are asked for and not there, not asked for and there, too old for PyTorch, or too small."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from trainjob.api import TrainJob, TrainJobSpec
from trainjob.api.trainjob import Workers
from trainjob.driver.run import run
from trainjob.driver.worker_cpus import note_slow_precision
from trainjob.errors import UserError
from trainjob.worker.devices import (
    check_gpus,
    check_kernels,
    device_of,
    is_out_of_memory,
    out_of_memory,
)

IMAGES = {"model": {"imageClassifier": {"mlp": {}}}}


@pytest.fixture(autouse=True)
def no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.mark.parametrize(
    "spec",
    [
        IMAGES | {"dataset": {"train": {"uri": "/data"}, "loader": "dataLoader"}},
        IMAGES | {"dataset": {"train": {"uri": "/data"}, "loader": "rayData"}},
        {"model": {"function": {"name": "own:loop"}}},
    ],
    ids=["dataLoader", "rayData", "function"],
)
def test_a_run_with_gpus_is_refused_where_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any]
):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    spec |= {"workers": {"gpus": 1}, "storage": {"uri": str(tmp_path / "runs")}}
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "x"}, "spec": spec}
    with pytest.raises(
        UserError, match=r"PyTorch cannot use any GPU of this machine \(\w.+\). Set it to 0 to train on"
    ):
        run(TrainJob.model_validate(document), source=tmp_path, started=time.time())
    assert not (tmp_path / "runs" / "x" / "attempts.json").exists()


def test_more_workers_than_gpus():
    check_gpus(Workers(count=2, gpus=1), found=2)
    with pytest.raises(UserError, match="PyTorch can use 1 on this machine: set the count to 1 or less"):
        check_gpus(Workers(count=2, gpus=1), found=1)


def test_a_worker_without_a_gpu():
    assert device_of(Workers(gpus=0)) == torch.device("cpu")
    with pytest.raises(UserError, match="a worker has no GPU that PyTorch can use"):
        device_of(Workers(gpus=1))


@pytest.mark.parametrize(
    ("built_for", "runs"),
    [
        (["sm_80"], True),
        (["sm_86"], True),
        (["sm_90"], False),
        (["sm_75"], False),
        (["sm_70", "compute_70"], True),
        (["compute_90"], False),
        (["sm_90a", "sm_100", "sm_120"], False),
        ([], False),
    ],
)
def test_a_gpu_runs_what_was_built_for_its_kind(built_for: list[str], runs: bool):
    if runs:
        check_kernels("A10", (8, 6), built_for)
    else:
        with pytest.raises(UserError, match=r"has no code for the GPU A10 \(sm_86\)"):
            check_kernels("A10", (8, 6), built_for)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), True),
        (torch.AcceleratorError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (torch.distributed.DistBackendError("ncclUnhandledCudaError\nCuda failure 2 'out of memory'"), True),
        (RuntimeError("HIP error: out of memory"), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (RuntimeError("Cuda failure 217 'peer access is not supported'"), False),
        (ValueError("CUDA error: out of memory"), False),
    ],
)
def test_what_a_gpu_without_memory_says(error: Exception, expected: bool):
    assert is_out_of_memory(error) is expected


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"textClassifier": {"encoder": {}, "maxLength": 64}}, "8 rows of up to 64 tokens of each batch of 32"),
        ({"causalLM": {"decoder": {}, "maxLength": 64}}, "gradientAccumulation by as much) or spec.model.causalLM.max"),
        ({"imageClassifier": {"cnn": {}}}, "its 8 rows of each batch of 32: lower spec.training.batchSize"),
    ],
)
def test_too_little_memory_is_told_with_what_to_lower(model: dict[str, Any], words: str):
    dataset = {"train": {"uri": "/data"}} | ({} if "imageClassifier" in model else {"text": ["text"]})
    dataset |= {"label": "label"} if "textClassifier" in model else {}
    document = {"model": model, "dataset": dataset, "training": {"batchSize": 32}, "workers": {"count": 4, "gpus": 1}}
    spec = TrainJobSpec.model_validate(document)
    assert words in str(out_of_memory(spec, torch.OutOfMemoryError("CUDA out of memory.")))


@pytest.mark.parametrize(
    ("precision", "gpus", "has_bfloat16", "who"),
    [
        ("fp16", 0, True, "CPUs"),
        ("fp16", 1, True, None),
        ("bf16", 0, False, "this machine's CPU"),
        ("bf16", 0, True, None),
        ("bf16", 1, False, None),
        ("auto", 0, False, None),
    ],
)
def test_a_precision_that_cpus_emulate_is_noted(
    precision: str,
    gpus: int,
    has_bfloat16: bool,
    who: str | None,
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": has_bfloat16})
    document = IMAGES | {"dataset": {"train": {"uri": "/data"}}}
    document |= {"training": {"precision": precision}, "workers": {"gpus": gpus}}
    note_slow_precision(TrainJobSpec.model_validate(document))
    wanted = f"spec.training.precision is {precision}, which {who} can only emulate, "
    assert [str(each.message).startswith(wanted) for each in recwarn] == [True] * (who is not None)
