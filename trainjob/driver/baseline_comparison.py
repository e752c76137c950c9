"""Compares the model of a finished run with its baselines."""

from trainjob.api import TrainJob
from trainjob.doing import DOING
from trainjob.errors import listed, notify
from trainjob.progress.snapshots import Snapshots
from trainjob.runs.comparison import Comparison
from trainjob.runs.contents import Contents
from trainjob.runs.files import BASELINES
from trainjob.runs.folder import changed_fields, replace_baselines
from trainjob.runs.lock import locked
from trainjob.storage import Folder


def compare_and_report(job: TrainJob, folder: Folder, snapshots: Snapshots) -> Comparison | None:
    """Compares the model with the baselines, and writes the report again. The run has already finished: an error here
    gives a Notice and does not fail it."""
    names = _names(job)
    if not names:
        return None
    snapshots.comparing()
    from trainjob.baselines.compare import compare_with_baselines
    from trainjob.report.render import write_report

    try:
        comparison = compare_with_baselines(job, folder, names)
        DOING.begin("writing the report")
        write_report(folder)
    except (Exception, KeyboardInterrupt) as error:
        reason = "stopped" if isinstance(error, KeyboardInterrupt) else error
        notify(f"the baselines could not be computed: {reason}; `trainjob baseline {folder.uri}` tries it again")
        return None
    return comparison


def update_comparison(job: TrainJob, folder: Folder, contents: Contents, snapshots: Snapshots) -> Comparison | None:
    """The comparison of a run that has finished before, computed again if the baselines of `job` have changed. Gives a
    Notice of other fields that have changed: they no longer have an effect."""
    changed = [path for path in changed_fields(contents.job, job) if not path.startswith("spec.baselines")]
    if changed:
        notify(f"the run has finished: these fields have changed and have no effect: {listed(changed)}")
    if not job.spec.model.facts.baselines or job.spec.baselines == contents.job.spec.baselines:
        return contents.comparison
    names = _names(job)
    from trainjob.report.render import write_report

    notify(f"spec.baselines has changed: computing {listed(names)}" if names else "spec.baselines has become empty")
    with locked(folder):
        comparison = compare_and_report(job, folder, snapshots)
        if names and comparison is None:  # it failed, which was reported
            return contents.comparison
        replace_baselines(folder, contents.job, job.spec.baselines)
        if not names:
            folder.delete(BASELINES)
        write_report(folder)
    return comparison


def _names(job: TrainJob) -> list[str]:
    """The names of the job's baselines."""
    return job.spec.baselines.named if job.spec.baselines is not None else []
