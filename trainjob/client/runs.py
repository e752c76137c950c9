"""Runs from Python: trained here, or read from their folder."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from trainjob.api.training_status import TrainingStatus
from trainjob.client.live import live_display, progress_html

if TYPE_CHECKING:
    import pandas as pd

    from trainjob.api import TrainJob
    from trainjob.evaluation import Scores
    from trainjob.generator import TextGenerator
    from trainjob.predictor import Predictor
    from trainjob.storage import Folder

TrainJobSource = Union[str, Path, Mapping[str, Any], "TrainJob"]
"""A YAML file, its content, or the typed classes of `trainjob.api`."""

OnProgress = Callable[[TrainingStatus], None]


@dataclass(frozen=True)
class Run:
    """A run, finished or not, in its folder."""

    folder: "Folder"

    @property
    def uri(self) -> str:
        """The folder: a path, s3:// or gs://."""
        return self.folder.uri

    @property
    def report(self) -> str:
        """The path or URI of the report."""
        from trainjob.runs.files import REPORT

        return (self.folder / REPORT).uri

    @property
    def evaluation(self) -> "dict[str, Scores]":
        """The scores of the best model by set: `validation`, `test`; empty until the run has finished, and for a
        function."""
        from trainjob.runs.contents import read_contents

        return read_contents(self.folder).evaluation

    def metrics(self) -> "pd.DataFrame":
        """The metrics of each step and each epoch, one row each; the column `kind` tells them apart."""
        import pandas as pd

        from trainjob.runs.history import read_history

        return pd.DataFrame(read_history(self.folder))

    def predictor(self) -> "Predictor | TextGenerator":
        """The best model; a TextGenerator for a language model. Raises UserError until the run has finished."""
        from trainjob.generator import TextGenerator
        from trainjob.predictor import Predictor
        from trainjob.runs.model import is_language_model, model_folder

        kind = TextGenerator if is_language_model(model_folder(self.folder)) else Predictor
        return kind.load(self.folder.uri, self.folder.endpoint)


def run(
    job: TrainJobSource,
    overrides: Sequence[str] = (),
    *,
    fresh: bool = False,
    on_progress: OnProgress = lambda _: None,
    on_output: Callable[[str], None] = print,
) -> Run:
    """Trains on this machine as `trainjob run` does, or continues the run of the same name, and returns the run.

    `overrides` are such as "spec.training.epochs=3"; `fresh` deletes an earlier run of this name;
    `on_progress` is called with each new state of training, which a notebook shows, and `on_output` with each line that
    rank 0 of a function prints. Paths in a file are relative to the file, other paths to the current folder.

    Raises InvalidDocument for an invalid TrainJob, another UserError for what the user can fix, and WorkerError for the
    error of a worker.
    """
    from trainjob.api.load import load_trainjob, trainjob_of
    from trainjob.driver.early_workers import early_workers
    from trainjob.storage import Folder

    started = time.time()
    if isinstance(job, str | Path):
        file = Path(job).absolute()
        loaded, source = load_trainjob(file, overrides), file.parent
    else:
        loaded, source = trainjob_of(as_document(job), overrides), Path.cwd()
    show, title = live_display(), f"<b>{escape(loaded.metadata.name)}</b> on this machine"

    def on_status(status: TrainingStatus) -> None:
        show(progress_html(title, [status.stage, status.message], status))
        on_progress(status)

    with early_workers(loaded.spec) as workers:
        from trainjob.driver.run import run as train

        finished = train(
            loaded,
            source=source,
            started=started,
            fresh=fresh,
            on_status=on_status,
            on_output=on_output,
            workers=workers,
        )
    return Run(Folder(finished.run.uri, finished.run.endpoint))


def as_document(job: "Mapping[str, Any] | TrainJob") -> Mapping[str, Any]:
    """The TrainJob as in YAML, without the defaults of its classes."""
    if isinstance(job, Mapping):
        return job
    return job.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
