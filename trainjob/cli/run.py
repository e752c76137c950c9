"""`trainjob run`"""

import time
from typing import Annotated

import typer

from trainjob.cli.options import Overrides, TrainJobFile


def run(
    file: TrainJobFile,
    overrides: Overrides,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Worker processes: the same as --set spec.workers.count=N.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete what an earlier run of this name has left.")] = False,
) -> None:
    """Train; the same command again continues a run that was interrupted."""
    started = time.time()
    from trainjob.api.load import load_trainjob
    from trainjob.cli.progress import display

    if workers is not None:
        overrides = [*overrides, f"spec.workers.count={workers}"]
    job = load_trainjob(file, overrides)

    from trainjob.training.run import run as train

    with display(job.metadata.name) as progress:
        train(job, source=file.absolute().parent, started=started, fresh=fresh, on_status=progress.update)
