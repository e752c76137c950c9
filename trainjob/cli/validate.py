"""`trainjob validate`"""

from trainjob.cli.options import Overrides, TrainJobFile


def validate(file: TrainJobFile, overrides: Overrides) -> None:
    """Show all mistakes in a TrainJob, with field and line."""
    from trainjob.api.load import load_trainjob

    job = load_trainjob(file, overrides)
    print(f"{file}: TrainJob {job.metadata.name} is valid")
