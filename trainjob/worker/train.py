"""Trains and evaluates a model on one worker, on a Ray cluster and in local processes alike."""

import json
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from trainjob.data import Fitted
from trainjob.data.batches.loaders import Shard
from trainjob.errors import UserError
from trainjob.evaluation import Scores, parse_scores
from trainjob.launch.quick_imports import quick_imports
from trainjob.launch.worker_errors import WorkerError
from trainjob.models import save_config
from trainjob.precision import PRECISIONS, allow_tf32
from trainjob.pretrained.hub import from_cache, may_be_downloaded
from trainjob.pretrained.remote_model import local_model
from trainjob.progress.channel import Direct, Sender, sender_to
from trainjob.progress.percent import Workload, workload
from trainjob.progress.reporter import Reporter
from trainjob.runs.checkpoints import CheckpointTensors, SavedCheckpoints
from trainjob.runs.files import EVALUATION, MODEL, VALIDATED
from trainjob.runs.model import save_as_model
from trainjob.runs.owner import claim_for_workers, held_by_workers
from trainjob.runs.predictions import write_predictions
from trainjob.scratch import scratch_folder
from trainjob.worker.devices import device_of, is_out_of_memory, out_of_memory
from trainjob.worker.distributed import (
    broadcast_from_rank_0,
    gather_on_rank_0,
    is_local_rank_0,
    local_rank_0_first,
    rank,
    world_size,
)
from trainjob.worker.job import WorkerJob
from trainjob.worker.loop import Trainer, TrainerInputs
from trainjob.worker.optim import why_not_compiled
from trainjob.worker.outcome import Outcome, Stopped
from trainjob.worker.placement import build_for, to_device_or_shard
from trainjob.worker.random_states import seed
from trainjob.worker.rank_data import load_rank_data
from trainjob.worker.scoring import Predicted
from trainjob.worker.sharded_tensors import load_weights
from trainjob.worker.stop_notices import is_told_to_stop, pod_is_leaving


def train_and_score(job: WorkerJob) -> Outcome | Stopped | None:
    """Trains on this rank, within Ray Train. On rank 0, returns the outcome, or Stopped if training was told to stop.

    Raises UserError or WorkerError.
    """
    try:
        return _train(job, rank())
    except UserError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise out_of_memory(job.spec, error) from None
        if job.spec.training.compile and (reason := why_not_compiled(error)):
            raise UserError(f"spec.training.compile: {reason}") from None
        raise WorkerError.caught(rank(), error) from None


def _train(job: WorkerJob, rank: int) -> Outcome | Stopped | None:
    entered = time.time()
    torch.set_num_threads(job.threads)
    spec = job.spec
    sender = sender_to(job.driver) if rank == 0 else None
    run = replace(job.run, on_wait=lambda why: reporter.waits(why))
    reporter = Reporter(sender, SavedCheckpoints(run, spec.checkpoints), spec.training.epochs)
    reporter.starting("loading the model")
    claim = broadcast_from_rank_0(claim_for_workers(run) if rank == 0 else None)
    job = replace(job, run=held_by_workers(run, claim))
    with scratch_folder() as scratch:
        with quick_imports():  # the model's libraries
            trainer = _build_trainer(job, rank, reporter, scratch)
        reporter.starting("preparing to train")
        resumed = _resume(trainer)
        if rank == 0 and resumed is None:
            _check_tokenizer(trainer, job, scratch / "export")
        state = trainer.state
        reporter.plan(_workload(job, trainer), trainer.plan.validations)
        reporter.begin(state.epoch, state.step, trainer.plan.steps, world_size(), resumed, trainer.history.records)
        if job.trains:
            trainer.train()
        if trainer.stopped:
            return _stopped(reporter, sender)
        outcome = None
        if job.evaluates:
            trainer.start_stage("evaluation")
            reporter.evaluating("loading the best checkpoint")
            outcome = _evaluate_best(trainer, job)
            trainer.start_stage("end")
    if sender is None:
        return None
    sender.close()
    if outcome is None:
        return None
    return outcome.model_copy(update={"entered": entered, "seconds": trainer.state.seconds})


def _stopped(reporter: Reporter, sender: Sender | Direct | None) -> Stopped | None:
    nodes = gather_on_rank_0(_own_node() if pod_is_leaving() else None)
    if nodes is None or sender is None:
        return None
    reporter.restarting()
    sender.close()
    return Stopped(leaving=[node for node in nodes if node is not None])


def _own_node() -> str:
    import ray

    return ray.get_runtime_context().get_node_id()


def _build_trainer(job: WorkerJob, rank: int, reporter: Reporter, scratch: Path) -> Trainer:
    spec, preprocessor = job.spec, job.fitted.preprocessor
    workers, device = world_size(), device_of(spec.workers)
    training = spec.training
    turns = local_rank_0_first() if may_be_downloaded(spec.model.pretrained) else nullcontext()
    with turns, from_cache(not is_local_rank_0()), local_model(spec, weights=True) as model_here:
        module = build_for(model_here, training, preprocessor, device)
    if device.type == "cuda":
        allow_tf32(training.precision)
    module.to(memory_format=torch.channels_last)  # faster for convolutions, without effect on others
    shard = Shard(rank, workers, training.batch_size, training.seed)
    reporter.starting("waiting for rows")
    data = load_rank_data(job, shard)
    if data.training_rows < workers:
        raise UserError(too_few_rows(data.training_rows, workers, job.fitted))
    model = to_device_or_shard(module, training, device, on_ray=job.on_ray)

    def on_rows_scored(name: str, rows: int) -> None:
        reporter.scored(name, rows * workers, job.fitted.rows.get(name, 0))

    if training.compile:
        model.compile()
    inputs = TrainerInputs(
        spec=spec,
        preprocessor=preprocessor,
        module=module,
        model=model,
        device=device,
        data=data,
        run=job.run,
        scratch=scratch,
        reporter=reporter,
        on_rows_scored=on_rows_scored,
        is_told_to_stop=is_told_to_stop if job.on_ray else lambda: False,
    )
    trainer = Trainer(inputs)
    seed(training.seed + 1 + rank)  # last: some libraries draw numbers when they are imported
    return trainer


def _resume(trainer: Trainer) -> str | None:
    """Continues from the latest intact checkpoint, if there is one, and returns its name."""
    name = trainer.store.latest()
    if name is not None:
        trainer.resume(name)
        if rank() == 0:
            trainer.history.resume(trainer.state.step)
    return name


def _workload(job: WorkerJob, trainer: Trainer) -> Workload:
    """The share of the run's work in this job: a trial is not evaluated at its end; the best one is, by another job."""
    rows = job.fitted.rows
    final = sum(rows[name] for name in _evaluated_sets(job).values()) if job.evaluates else 0
    if not job.trains:
        return workload(0, 0, 0, 0, final)
    epochs = trainer.plan.steps / trainer.plan.steps_per_epoch
    return workload(job.fitted.training_rows, epochs, rows["validation"], trainer.plan.validations, final)


def _check_tokenizer(trainer: Trainer, job: WorkerJob, folder: Path) -> None:
    """Exports the model, without its weights, into `folder`. Raises DataError if transformers tokenizes differently
    with the export than training does, before anything is trained."""
    preprocessor, texts = job.fitted.preprocessor, job.fitted.sample
    if texts:
        folder.mkdir()
        save_config(trainer.module, preprocessor, folder)
        preprocessor.input.check_export(folder, texts)


def too_few_rows(rows: int, workers: int, fitted: Fitted) -> str:
    """The error for fewer rows than workers. Several of the user's rows may be packed into one."""
    if not fitted.preprocessor.input.packs:
        return f"{rows} training rows are too few for {workers} workers: lower spec.workers.count"
    return (
        f"the {fitted.training_rows} training rows fill only {rows} of at most maxLength tokens, too few for {workers} "
        "workers: lower spec.workers.count or spec.model.causalLM.maxLength"
    )


def _evaluate_best(trainer: Trainer, job: WorkerJob) -> Outcome:
    """Evaluates the best checkpoint, saves its predictions, and saves its model as the run's."""
    name, manifest = trainer.store.best()
    best = trainer.store / name
    load_weights(trainer.module, CheckpointTensors(best, manifest.files))
    sets = _evaluated_sets(job)
    validation = parse_scores(job.spec.model.facts, json.loads(best.read(EVALUATION)))
    target = job.fitted.preprocessor.target.decided(validation)
    trainer.scorer = trainer.scorer.by(target.objective(job.spec, trainer.module))
    scored = {set_name: _predict(trainer, job, set_name, kept_as) for kept_as, set_name in sets.items()}
    trainer.reporter.evaluating("saving the model")
    if rank() == 0:
        save_as_model(best, manifest.files, job.run / MODEL)
    return Outcome(
        best_checkpoint=name,
        best_epoch=manifest.epoch,
        best_step=manifest.step,
        best_value=trainer.store.value(manifest),
        validation=validation,
        test=scored.get("test"),
        epochs=trainer.state.epoch,
        steps=trainer.state.step,
        stopped_early=trainer.state.stopped_early,
        parameters=sum(parameter.numel() for parameter in trainer.module.parameters()),
        trained_parameters=sum(each.numel() for each in trainer.module.parameters() if each.requires_grad),
        precision=next(name for name, dtype in PRECISIONS.items() if dtype == trainer.step.dtype),
        device=torch.cuda.get_device_name() if trainer.device.type == "cuda" else trainer.device.type,
    )


def _evaluated_sets(job: WorkerJob) -> dict[str, str]:
    """The sets that the best checkpoint is scored on, by the names that its predictions are kept under. Where the
    report chooses a threshold, the validation rows are among them: they alone choose it."""
    if job.spec.dataset is None or job.spec.dataset.test is None:
        return {MODEL: "validation"}
    return {MODEL: "test"} | ({VALIDATED: "validation"} if job.fitted.preprocessor.target.has_threshold else {})


def _predict(trainer: Trainer, job: WorkerJob, set_name: str, name: str) -> Scores:
    """Scores a set, and saves the predictions of its rows under the name `name`."""
    predicted = Predicted()
    scores = trainer.scorer.score(trainer.module, set_name, predicted)
    table = predicted.gathered()
    if table is not None:
        write_predictions(job.run, name, job.fitted.preprocessor.target.decoded(table))
    return scores
