"""The planned memory of a step equals what PyTorch's allocator reports in a real one."""

import csv
import random
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from trainjob.api import TrainJob
from trainjob.api.load import load_trainjob
from trainjob.data import fit, prepare_examples
from trainjob.data.batches.loaders import InMemoryBatches, Shard
from trainjob.driver.check import check_data
from trainjob.errors import DataError
from trainjob.models import build
from trainjob.plan.plan import Plan, make_plan
from trainjob.worker.step import Step
from trainjob.worker.step_plan import StepPlan

ROWS = 60
TEXT = {"textClassifier": {"encoder": {"layers": 2, "hiddenSize": 64, "heads": 2}, "maxLength": 48}}
LANGUAGE = {"causalLM": {"decoder": {"layers": 2, "hiddenSize": 64, "heads": 2}, "maxLength": 64}}


def job_of(folder: Path, model: dict[str, Any], training: dict[str, Any], **spec: Any) -> TrainJob:
    chance = random.Random(0)
    words = [f"w{number}" for number in range(200)]
    with open(folder / "rows.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label"])
        for row in range(ROWS):
            table.writerow([" ".join(chance.choices(words, k=chance.randint(3, 60))), f"class-{row % 3}"])
    dataset: dict[str, Any] = {"train": {"uri": "rows.csv"}, "validation": {"fraction": 0.1}, "text": ["text"]}
    if "textClassifier" in model:
        dataset["label"] = "label"
    training = {"batchSize": 8, "epochs": 2, "precision": "float32"} | training
    document = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "planned"},
        "spec": {"model": model, "dataset": dataset, "training": training, **spec},
    }
    file = folder / "trainjob.yaml"
    file.write_text(yaml.safe_dump(document))
    return load_trainjob(file, [])


def plan_of(job: TrainJob, capacity: int | None = None) -> Plan:
    return make_plan(job, check_data(job), capacity)


def peak_of_steps(job: TrainJob) -> tuple[int, int]:
    """The allocator's peak in the steps with the longest rows, and the steps of the whole training."""
    spec = job.spec
    fitted = fit(spec)
    examples = prepare_examples(spec, fitted)["train"]
    shard = Shard(0, 1, spec.training.batch_size, spec.training.seed)
    batches = list(InMemoryBatches(examples, fitted.preprocessor, shard).epoch(0))
    steps = StepPlan.of(spec.training, len(batches)).steps
    batches.sort(key=lambda batch: -batch.inputs["input_ids"].numel())
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profiled:
        module = build(spec.model, fitted.preprocessor)
        if spec.training.activation_checkpointing:
            module.recompute_activations()
        module.train()
        step = Step(spec, fitted.preprocessor, module, module, torch.device("cpu"), torch.float32)
        for batch in batches[:2]:
            step.backward(batch, torch.tensor(float(batch.weight)))
            step.update()
    profiler: Any = profiled.profiler
    events = sorted(profiler.kineto_results.events(), key=lambda event: event.start_ns())
    now = peak = 0
    for event in events:
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now)
    return peak, steps


@pytest.mark.parametrize(
    ("model", "training"),
    [
        (TEXT, {}),
        (LANGUAGE, {"gradientClipping": 1.0}),
        (LANGUAGE, {"activationCheckpointing": True, "optimizer": {"sgd": {"momentum": 0.9}}}),
    ],
    ids=["text", "language", "checkpointed"],
)
def test_memory_and_steps(tmp_path: Path, model: dict[str, Any], training: dict[str, Any]) -> None:
    job = job_of(tmp_path, model, training)
    plan = plan_of(job)
    peak, steps = peak_of_steps(job)
    assert plan.memory is not None
    assert plan.memory.total == pytest.approx(peak, rel=0.1)
    assert plan.steps is not None
    assert (plan.steps.total, plan.steps.is_exact) == (steps, True)


def test_optimizer_state(tmp_path: Path) -> None:
    adam = plan_of(job_of(tmp_path, TEXT, {})).memory
    sgd = plan_of(job_of(tmp_path, TEXT, {"optimizer": {"sgd": {"momentum": 0.9}}})).memory
    assert adam is not None
    assert sgd is not None
    assert adam.gradients == sgd.gradients
    assert adam.optimizer == pytest.approx(2 * adam.gradients, rel=0.01)
    assert sgd.optimizer == adam.gradients  # momentum


def test_gpu_keeps_no_matrix_of_all_pairs_of_tokens(tmp_path: Path) -> None:
    """Attention on a GPU takes memory by token, so that half as many rows of twice the length need the same."""
    short, long = (
        plan_of(
            job_of(
                tmp_path,
                {
                    "causalLM": {
                        "decoder": {"layers": 2, "hiddenSize": 64, "heads": 2, "vocabularySize": 300},
                        "maxLength": length,
                    }
                },
                {"batchSize": batch_size, "precision": "bf16"},
                workers={"gpus": 1},
            )
        ).memory
        for length, batch_size in ((256, 8), (512, 4))
    )
    assert short is not None
    assert long is not None
    assert long.activations == pytest.approx(short.activations, rel=0.05)


def test_sharding_divides_weights_gradients_and_optimizer(tmp_path: Path) -> None:
    workers = {"count": 4, "gpus": 1}
    whole = plan_of(job_of(tmp_path, LANGUAGE, {"precision": "bf16"}, workers=workers)).memory
    shard = plan_of(job_of(tmp_path, LANGUAGE, {"precision": "bf16", "sharding": "full"}, workers=workers)).memory
    assert whole is not None
    assert shard is not None
    for name in ("weights", "gradients", "optimizer"):
        assert getattr(shard, name) == getattr(whole, name) // 4


def test_alternatives_fit(tmp_path: Path) -> None:
    job = job_of(tmp_path, LANGUAGE, {"batchSize": 64, "precision": "bf16"}, workers={"count": 2, "gpus": 1})
    needed = plan_of(job).memory
    assert needed is not None
    capacity = 2**30 + needed.total // 2
    plan = plan_of(job, capacity)
    assert plan.fits == "no"
    smaller = plan.alternatives[0]
    batch_size, accumulation = smaller.settings["training.batchSize"], smaller.settings["training.gradientAccumulation"]
    assert int(batch_size) * int(accumulation) == 64
    again = plan_of(
        job_of(
            tmp_path,
            LANGUAGE,
            {"batchSize": batch_size, "precision": "bf16", "gradientAccumulation": accumulation},
            workers={"count": 2, "gpus": 1},
        ),
        capacity,
    )
    assert again.fits == "yes"
    assert again.memory is not None
    assert again.memory.total == pytest.approx(smaller.total, rel=0.02)
    assert any("training.activationCheckpointing" in each.settings for each in plan.alternatives)


def test_nothing_fits(tmp_path: Path) -> None:
    job = job_of(tmp_path, LANGUAGE, {"precision": "bf16"}, workers={"gpus": 1})
    plan = plan_of(job, 2**30)
    assert (plan.fits, plan.alternatives) == ("no", [])


def test_measured_steps(tmp_path: Path) -> None:
    job = job_of(tmp_path, TEXT, {"gradientAccumulation": 2})
    plan = make_plan(job, check_data(job), None, threads=1)
    assert plan.steps is not None
    assert plan.seconds_per_step is not None
    assert plan.seconds_per_step > 0
    assert plan.hours == pytest.approx(plan.seconds_per_step * plan.steps.total / 3600)


def test_a_function_has_only_rows(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"function": {"name": "train:main"}}, {})
    plan = plan_of(job)
    assert (plan.rows, plan.steps, plan.memory) == ({"train": ROWS}, None, None)
    assert "only its rows" in plan.notes[0]


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"textClassifier": {"pretrained": str(tmp_path / "missing")}}, {})
    with pytest.raises(DataError, match=r"spec\.model\.textClassifier\.pretrained"):
        plan_of(job)
