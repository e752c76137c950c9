"""Reads the data of a TrainJob as a run would before training."""

from dataclasses import dataclass

from trainjob.api import TrainJob, TrainJobSpec
from trainjob.data.first_pass.fitting import Fitted, fit
from trainjob.data.read.counted_reading import begin_reading, read_all
from trainjob.data.read.spec_parts import parts_by_set
from trainjob.data.read.split_folders import with_split_folders
from trainjob.errors import DataError
from trainjob.kinds.function.rows import raw_split


@dataclass(frozen=True)
class CheckedData:
    """The data of a TrainJob that can be trained on."""

    spec: TrainJobSpec
    """The job's spec, with the sets that were found in folders of the data."""
    rows: dict[str, int]
    """Usable rows of each set."""
    fitted: Fitted | None
    """The fitted preprocessor and split of a built-in model; None for a function."""
    is_split: bool
    """Whether the validation rows are taken from the training rows."""


def check_data(job: TrainJob) -> CheckedData:
    """Reads the rows of all sets once. Raises DataError as a run would, StorageError if they cannot be reached."""
    dataset = job.spec.dataset
    if dataset is None:
        raise DataError(f"{job.metadata.name} has no dataset (spec.dataset): there is no data to check")
    dataset, folders = with_split_folders(dataset, job.spec.storage.endpoint if job.spec.storage else None)
    spec = job.spec.model_copy(update={"dataset": dataset})
    is_split = dataset.validation.fraction is not None
    if not job.spec.model.facts.is_users_loop:
        fitted = fit(spec, folders=folders)
        return CheckedData(spec, fitted.rows, fitted, is_split)
    return CheckedData(spec, _rows_of_function(spec), None, is_split)


def _rows_of_function(spec: TrainJobSpec) -> dict[str, int]:
    """The number of rows of each source; splits them as a run would."""
    raw_split(spec)
    sets = parts_by_set(spec)
    begin_reading(sets.values())
    return {name: sum(len(rows.table) for rows in read_all(parts, None)) for name, parts in sets.items()}
