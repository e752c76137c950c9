"""`trainjob validate`"""

from trainjob.cli.options import Overrides, TrainJobFile
from trainjob.cli.output import say


def validate(file: TrainJobFile, overrides: Overrides) -> None:
    """Show all mistakes in a TrainJob, with field and line."""
    from trainjob.api.load import load_trainjob

    job = load_trainjob(file, overrides)
    say(f"{file}: TrainJob {job.metadata.name} is valid")
