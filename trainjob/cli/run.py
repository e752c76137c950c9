"""`trainjob run`"""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob import interrupts
from trainjob.cli.options import Overrides, TrainJobFile
from trainjob.cli.output import say
from trainjob.errors import notify

if TYPE_CHECKING:
    from trainjob.api import TrainJob
    from trainjob.api.training_status import TrainingStatus


def run(
    file: TrainJobFile,
    overrides: Overrides,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Worker processes: the same as --set spec.workers.count=N.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete an earlier run with this name, and start over.")
    ] = False,
) -> None:
    """Train a model, or continue a run that was interrupted.

    A run is kept in a folder of its name, by default in ./runs.
    """
    started = time.time()
    from trainjob.api.load import load_trainjob
    from trainjob.driver.early_workers import early_workers

    if workers is not None:
        overrides = [*overrides, f"spec.workers.count={workers}", "spec.workers.minimum=null"]
    job = load_trainjob(file, overrides)
    if job.spec.notify:
        notify("spec.notify has no effect here: the operator of a cluster sends notifications")
    seen: list[TrainingStatus] = []
    try:
        with early_workers(job.spec) as early:
            from trainjob.cli.progress import display
            from trainjob.progress.status_writer import reporting

            with display(job.metadata.name) as progress, reporting(job) as reporter:
                from trainjob.driver.run import run as train

                def on_status(status: "TrainingStatus") -> None:
                    seen[:] = [status]
                    progress.update(status)
                    if reporter is not None:
                        reporter.update(status)

                finished = train(
                    job,
                    source=file.absolute().parent,
                    started=started,
                    fresh=fresh,
                    on_status=on_status,
                    retries=lambda: job.spec.retries if reporter is None else reporter.retries,
                    on_output=progress.show,
                    workers=early,
                )
    except KeyboardInterrupt:
        say(f"\nstopped. {_how_to_continue(seen)}", error=True)
        raise typer.Exit(interrupts.exit_code()) from None
    except Exception as error:
        from trainjob.launch.worker_errors import WorkerError

        if not isinstance(error, WorkerError):
            raise
        if error.traceback:
            say(error.traceback.rstrip(), error=True)
        say(str(error), error=True, color=typer.colors.RED)
        if log := _log_of(job, error.rank):
            say(f"Its output is in {log}.", error=True)
        say(_how_to_continue(seen), error=True)
        raise typer.Exit(1) from None

    from trainjob.cli.summary import summary_lines
    from trainjob.runs.files import REPORT

    if finished.already:
        say(f"{job.metadata.name} has already finished; --fresh trains it again.")
    lines = summary_lines(
        finished.summary,
        finished.run.uri,
        finished.evaluation,
        finished.comparison,
        has_report=finished.run.exists(REPORT),
        best_trial=seen[-1].tuning.best if seen and seen[-1].tuning else None,
    )
    say("\n".join(lines))
    for remark in finished.summary.data.remarks if finished.summary.data is not None else []:
        if remark.is_severe:
            say(remark.text, error=True, color=typer.colors.RED)


def _log_of(job: "TrainJob", rank: int) -> str | None:
    from trainjob.errors import StorageError
    from trainjob.runs.folder import run_folder
    from trainjob.runs.logs import latest_log

    try:
        return latest_log(run_folder(job), rank)
    except StorageError:
        return None


def _how_to_continue(seen: "list[TrainingStatus]") -> str:
    checkpoint = seen[-1].latest_checkpoint if seen else None
    if checkpoint is None:
        return "The same command continues from the latest checkpoint, or starts over if there is none yet."
    return f"The same command continues from step {checkpoint.step:,} ({checkpoint.uri})."
