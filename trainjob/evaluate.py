"""Scores a saved model on labelled rows, as its run was scored on its sets."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import torch

from trainjob.api import Source, TrainJobSpec
from trainjob.api.data_profile import MANY_DROPPED
from trainjob.data import Fitted, Preprocessor
from trainjob.data.batches.batch import Batch
from trainjob.data.batches.examples import Examples, batches_by_length
from trainjob.data.batches.loaders import collate
from trainjob.data.batches.prepare import prepared
from trainjob.data.first_pass.fitting import usable_rows
from trainjob.data.first_pass.profile import joined_labels
from trainjob.data.read.bad_rows import BadRows, bad_rows_error
from trainjob.data.read.source import identity
from trainjob.data.read.spec_parts import source_parts
from trainjob.errors import Alarm, Notice, UserError, listed, notify
from trainjob.evaluation import Scores
from trainjob.kinds import KINDS
from trainjob.kinds.input import tell_unknown_categories, unknown_categories
from trainjob.kinds.inputs.parts import table_parts
from trainjob.models import load_any_model
from trainjob.models.scoring import tally_batches
from trainjob.precision import PRECISIONS, allow_tf32, has_units
from trainjob.runs.files import FITTED, TRAINJOB
from trainjob.runs.folder import read_job
from trainjob.runs.model import local_copy, model_folder, run_folder_of
from trainjob.runs.summary import read_summary
from trainjob.storage import Folder

if TYPE_CHECKING:
    from trainjob.kinds.causal_lm.tokens import TokensInput

BATCH_ROWS, PACKED_BATCH_ROWS = 64, 8
"""Rows of a batch. Rows packed from several texts are long."""
ADVICE = "Correct these rows, or have them left out with `--on-bad-rows drop`."


def evaluate(
    folder: Folder, data: str, variant: str | None = None, on_bad_rows: Literal["fail", "drop"] | None = None
) -> Scores:
    """Scores the best model of a run, or a smaller variant of it, on the rows at the URI `data`, in the precision in
    which the run was scored.

    A language model may also be given by its own folder. Raises UserError where there is no model, or no row on which
    it can be scored, DataError for rows that cannot be used. Gives a Notice of those that are left out where
    `on_bad_rows` or, without it, the run's `dataset.onBadRows` says so.
    """
    with local_copy(model_folder(folder, variant)) as local:
        module, preprocessor = load_any_model(local)
    run = run_folder_of(folder)
    spec = _spec(run, preprocessor)
    if spec is not None and spec.dataset is not None and identity(data) in map(identity, spec.dataset.train.all_uris):
        notify(f"{data} has the rows that the model was trained on: these scores say little about others")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    allow_tf32(spec.training.precision if spec is not None else "float32")
    objective = preprocessor.target.objective(spec, module)
    of_run = spec.dataset.on_bad_rows if spec is not None and spec.dataset is not None else "fail"
    bad, drops = BadRows(data), (on_bad_rows or of_run) == "drop"
    rows, labels, unknown = list[int](), list[np.ndarray | None](), Counter[str]()

    def batches() -> Iterator[Batch]:
        for count, each in _examples(run, spec, preprocessor, data, bad, drops, unknown):
            labels.append(each.labels)
            rows.append(count)
            size = PACKED_BATCH_ROWS if preprocessor.input.packs else BATCH_ROWS
            for indices in batches_by_length(each.lengths, size):
                yield collate(preprocessor, each.take(indices))

    tally = tally_batches(module.to(device), objective, batches(), device, _dtype(run, device))
    if bad.count and not drops:
        raise bad_rows_error({"": bad}, {}, advice=ADVICE)
    _tell_left_out(bad, sum(rows))
    if not sum(rows):
        raise UserError(f"{data} has no rows{' that can be used' if bad.count else ''}")
    if problem := preprocessor.target.why_not_scored(joined_labels(labels)):
        raise UserError(f"{data}: these rows {problem}")
    tell_unknown_categories(unknown, sum(rows))
    scores = tally.scores()
    if missing := [f'"{name}"' for name in scores.missing_classes()]:
        notify(f"{data}: no row has the label {listed(missing)}; a label without rows counts as 0 in macro averages")
    return scores


def _tell_left_out(bad: BadRows, used: int) -> None:
    """Gives a Notice of the rows that were left out beside the `used` ones; an Alarm where they are many."""
    if not bad.count:
        return
    total, lines = bad.count + used, bad.lines(counted=len(bad.mistakes) > 1)
    are_many = used > 0 and bad.count > MANY_DROPPED * total
    doubt = ", so the scores may say little about new rows" if are_many else ""
    told = f" {lines[0]}" if len(lines) == 1 else "".join(f"\n  {line}" for line in lines)
    noun = "row" if total == 1 else "rows"
    notify(f"{bad.source}: left out {bad.count:,} of {total:,} {noun}{doubt}:{told}", Alarm if are_many else Notice)


def _spec(run: Folder, preprocessor: Preprocessor) -> TrainJobSpec | None:
    """The spec of the run; None for the folder of a language model, which learns no labels, alone."""
    if "generation" in KINDS[preprocessor.kind].abilities and not run.exists(TRAINJOB):
        return None
    return read_job(run).spec


def _dtype(run: Folder, device: torch.device) -> torch.dtype:
    """The precision in which the run was scored; float32 where that is not known and, with a Notice, where the device
    has no units for it."""
    summary = read_summary(run) if run.exists(TRAINJOB) else None
    if summary is None or summary.precision is None:
        return torch.float32
    dtype = PRECISIONS[summary.precision]
    if has_units(dtype, device):
        return dtype
    notify(
        f"scored in float32; the run scored in {summary.precision}, which this processor only emulates, so the last "
        "digits in its report may differ"
    )
    return torch.float32


def _examples(
    run: Folder,
    spec: TrainJobSpec | None,
    preprocessor: Preprocessor,
    data: str,
    bad: BadRows,
    drops: bool,
    unknown: Counter[str],
) -> Iterator[tuple[int, Examples]]:
    """The prepared rows, and how many they were before. Once a row cannot be used and is not to be dropped, the others
    are only checked. Counts the cells of unknown categories in `unknown`, by column."""
    if spec is None:
        layout = cast("TokensInput", preprocessor.input).layout
        fitted = Fitted(preprocessor, None, None, {}, {})
        parts = table_parts(Source(uri=data), None, True, preprocessor.kind, layout.nested, layout.optional)
    else:
        fitted = replace(Fitted.load(run / FITTED), preprocessor=preprocessor)
        parts = source_parts(spec, Source(uri=data))
    unreadable = BadRows()  # found by the thread that reads ahead
    for rows, labels in usable_rows(parts, fitted, bad.add, on_unreadable=unreadable.add):
        if drops or not (bad.mistakes or unreadable.mistakes):
            yield len(rows.table), Examples.from_table(prepared(rows, labels, preprocessor))
            unknown.update(unknown_categories(preprocessor.input, rows.table, rows.where))
    bad.merge(unreadable)
