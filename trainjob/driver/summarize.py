"""Writes the results of a finished run: `evaluation.json`, `summary.json`, `report.html` and the model's card."""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.numbers import not_finite
from trainjob.api.training_status import CheckpointStatus, TrainingStatus
from trainjob.api.tuning import number_of_trials
from trainjob.data import Fitted
from trainjob.data.read.source import UNLABELLED
from trainjob.doing import DOING
from trainjob.evaluation import Scores
from trainjob.runs.attempts import Attempts
from trainjob.runs.checkpoints import SavedCheckpoints, checkpoint_name
from trainjob.runs.contents import read_contents
from trainjob.runs.files import CARD, EVALUATION, SUMMARY
from trainjob.runs.history import is_last_best, last_metrics
from trainjob.runs.summary import BestCheckpoint, Hardware, Summary, TrainingWorkers
from trainjob.runs.trials import Trial
from trainjob.storage import Folder
from trainjob.tuning.board import tuning_status
from trainjob.versions import versions
from trainjob.worker.outcome import Outcome

STAGES = ("start", "data", "training", "validation", "checkpoints", "evaluation")
STAGES_OF_TUNING = ("data", "tuning", "evaluation")


def summarize(
    job: TrainJob, outcome: Outcome, attempts: Attempts, fitted: Fitted, threads: int, seconds: dict[str, float]
) -> Summary:
    """The summary of the run of a built-in model. After a search, `job` has the best trial's hyperparameters."""
    stages = STAGES if job.spec.tuning is None else STAGES_OF_TUNING
    sets = ("train", "validation", *(["test"] if outcome.test is not None else []), UNLABELLED)
    rows = {name: fitted.rows[name] for name in sets if name in fitted.rows}
    workers, training = job.spec.workers.count, job.spec.training
    trained = min(
        fitted.training_rows * outcome.epochs, outcome.steps * training.batch_size * training.gradient_accumulation
    )
    return Summary(
        name=job.metadata.name,
        started=attempts.started,
        finished=datetime.now(UTC),
        attempts=attempts.count,
        parameters=outcome.parameters,
        trained_parameters=outcome.trained_parameters,
        rows=rows,
        classes=fitted.preprocessor.target.sizes().get("classes"),
        data=fitted.profile,
        workers=TrainingWorkers(count=workers, device=outcome.device, threads=threads),
        precision=outcome.precision,
        best_checkpoint=BestCheckpoint(
            step=outcome.best_step,
            epoch=outcome.best_epoch,
            metric=job.spec.checkpoints.metric,
            value=outcome.best_value,
        ),
        stopped_early=outcome.stopped_early,
        seconds={stage: seconds[stage] for stage in stages if stage in seconds},
        samples_per_second=trained / seconds["training"],
        versions=versions(),
        hardware=hardware(outcome.device),
    )


def reached(job: TrainJob, records: list[dict[str, Any]], trials: list[Trial]) -> TrainingStatus:
    """The progress of a run, from its records (`metrics.jsonl`) and the trials of its search."""
    tuning = job.spec.tuning
    epochs = [record for record in records if record["kind"] == "epoch"]
    if not epochs:
        return TrainingStatus()
    step, epoch, is_function = records[-1]["step"], epochs[-1]["epoch"], job.spec.model.facts.is_users_loop
    return TrainingStatus(
        epoch=int(epoch),
        epochs=None if is_function else job.spec.training.epochs,
        epochs_completed=len(epochs),
        step=step,
        metrics=last_metrics(records),
        is_best=not is_function and is_last_best(records, job.spec.checkpoints),
        tuning=tuning and tuning_status(trials, number_of_trials(tuning), job.spec.checkpoints.lower_is_better),
    )


def final_fields(job: TrainJob, run: Folder, summary: Summary, evaluation: Mapping[str, Scores]) -> dict[str, Any]:
    """The fields of `status.training` that are set at the end of a run."""
    fields: dict[str, Any] = {
        "stage": "Finished",
        "message": not_finite(summary.metrics),
        "percent": 100.0,
        "eta": None,
        "phase": None,
        "workers": None,
        "evaluation": {
            name: value for each, scores in evaluation.items() for name, value in scores.as_metrics(each).items()
        },
    }
    if summary.metrics:
        fields["metrics"] = summary.metrics
    if best := summary.best_checkpoint:
        uri = SavedCheckpoints(run, job.spec.checkpoints).uri(checkpoint_name(best.epoch, best.step))
        fields["best_checkpoint"] = CheckpointStatus(uri=uri, step=best.step, metric=best.metric, value=best.value)
    return fields


def write_results(run: Folder, summary: Summary, outcome: Outcome | None) -> None:
    DOING.begin("writing the report")
    if outcome is not None:
        evaluation = {
            name: scores.model_dump(mode="json", by_alias=True) if scores is not None else None
            for name, scores in (("validation", outcome.validation), ("test", outcome.test))
        }
        run.write(EVALUATION, json.dumps(evaluation, indent=1).encode())
    run.write(SUMMARY, summary.model_dump_json(by_alias=True, indent=1).encode())
    write_pages(run)


def write_pages(run: Folder) -> None:
    """Writes the report of a finished run, and its model's card."""
    from trainjob.report.card import card
    from trainjob.report.render import write_report  # matplotlib takes long to import

    write_report(run)
    contents = read_contents(run)
    if contents.evaluation:
        run.write(CARD, card(contents).encode())


def hardware(device: str) -> Hardware:
    """The hardware of this machine. `device`: the device of the workers."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return Hardware(
        cpu=names[0] if names else platform.processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        gpus=[] if device == "cpu" else [device],
    )
