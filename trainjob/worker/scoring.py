"""Scoring a whole set over all workers: every row counts exactly once."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import torch

from trainjob.data.batch import Batch
from trainjob.evaluation import Scores
from trainjob.models import Objective
from trainjob.worker.distributed import from_who_has_one, gather_on_all, gather_on_rank_0
from trainjob.worker.placement import is_sharded


class Scorer:
    """Scores a model on the sets of a run.

    `batches(name)` gives this rank's batches of the set `name`.
    """

    def __init__(
        self,
        batches: Callable[[str], Iterator[Batch]],
        objective: Objective,
        device: torch.device,
        dtype: torch.dtype,
        on_rows: Callable[[str, int], None] = lambda name, rows: None,
    ) -> None:
        """`on_rows` is called after each batch, with the set's name and how many of its rows this rank has scored."""
        self._batches, self._objective, self._device, self._dtype = batches, objective, device, dtype
        self._on_rows = on_rows

    def score(self, module: torch.nn.Module, name: str, predicted: "Predicted | None" = None) -> Scores:
        """Scores on all rows of the set, the same on every rank. Ranks may have unequal numbers of batches.

        What is predicted for each row goes into `predicted`, where it is given.
        """
        tally = self._objective.tally(self._device)
        was_training, rows = module.training, 0
        module.eval()
        with torch.inference_mode():
            for batch, is_own in self._in_step(module, name):
                moved = batch.to(self._device)
                with torch.autocast(self._device.type, self._dtype, enabled=self._dtype != torch.float32):
                    answers = module(**moved.inputs)
                if not is_own:
                    continue
                tally.add(moved, answers)
                rows += len(batch)
                self._on_rows(name, rows)
                if predicted is not None:
                    predicted.add(self._objective.predictions(answers, moved))
        module.train(was_training)
        tally.combine(gather_on_all)
        return tally.scores()

    def _in_step(self, module: torch.nn.Module, name: str) -> Iterator[tuple[Batch, bool]]:
        """This rank's batches, each with True. Of a sharded module, in whose forward pass every rank takes part, then
        others' with False, while other ranks have more."""
        batches = self._batches(name)
        while True:
            own = next(batches, None)
            batch = from_who_has_one(own, self._device) if is_sharded(module) else own
            if batch is None:
                return
            yield batch, own is not None


@dataclass
class Predicted:
    """What a model predicts for the rows of a set, over all ranks."""

    _parts: list[pa.Table] = field(default_factory=list[pa.Table])

    def add(self, rows: pa.Table | None) -> None:
        if rows is not None:
            self._parts.append(rows)

    def gathered(self) -> pa.Table | None:
        """Rank 0's table of all ranks' rows, in their order and numbered from 0; None on the others, and where nothing
        is predicted."""
        tables = list(itertools.chain(*(gather_on_rank_0(self._parts) or [])))
        if not tables:
            return None
        table = pa.concat_tables(tables).sort_by("row")
        return table.set_column(table.column_names.index("row"), "row", pa.array(range(len(table)), pa.int64()))
