"""Scoring a whole set over all workers: every row counts exactly once."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import torch

from trainjob.data.batches.batch import Batch
from trainjob.evaluation import Scores
from trainjob.models import Objective
from trainjob.models.scoring import tally_batches
from trainjob.worker.distributed import first_available, gather_on_all, gather_on_rank_0
from trainjob.worker.placement import is_sharded

JOINED_BATCHES = 32
"""The predictions of so many batches are copied into one table. Otherwise small arrays that stay lie among the large
ones of the forward passes, and the C library needs up to half a megabyte more for each batch."""


class Scorer:
    """Scores a model on the sets of a run."""

    def __init__(
        self,
        batches: Callable[[str], Iterator[Batch]],
        objective: Objective,
        device: torch.device,
        dtype: torch.dtype,
        on_rows: Callable[[str, int], None] = lambda name, rows: None,
    ) -> None:
        """`batches` returns this rank's batches of a set, by its name. `on_rows` is called after each batch with the
        set's name and the number of its rows that this rank has scored."""
        self._batches, self._objective, self._device, self._dtype = batches, objective, device, dtype
        self._on_rows = on_rows

    def by(self, objective: Objective) -> "Scorer":
        """The same scorer with another objective."""
        return Scorer(self._batches, objective, self._device, self._dtype, self._on_rows)

    def score(self, module: torch.nn.Module, name: str, predicted: "Predicted | None" = None) -> Scores:
        """Returns the scores on all rows of the set `name`, the same on every rank. Ranks may have unequal numbers of
        batches. `predicted` collects the predictions of each row.
        """
        rows = 0

        def on_outputs(batch: Batch, outputs: torch.Tensor) -> None:
            nonlocal rows
            rows += len(batch)
            self._on_rows(name, rows)
            if predicted is not None:
                predicted.add(self._objective.predictions(outputs, batch))

        batches = self._in_step(module, name)
        tally = tally_batches(module, self._objective, batches, self._device, self._dtype, on_outputs)
        tally.combine(gather_on_all)
        return tally.scores()

    def _in_step(self, module: torch.nn.Module, name: str) -> Iterator[Batch]:
        """Yields this rank's batches. For a sharded module, whose forward pass needs every rank, then yields batches of
        other ranks, marked not to count, as long as other ranks have more."""
        batches = self._batches(name)
        while True:
            of_this_rank = next(batches, None)
            batch = first_available(of_this_rank, self._device) if is_sharded(module) else of_this_rank
            if batch is None:
                return
            yield batch if of_this_rank is not None else replace(batch, is_real=False)


@dataclass
class Predicted:
    """Collects the predictions for the rows of a set."""

    _tables: list[pa.Table] = field(default_factory=list[pa.Table])
    _latest: list[pa.Table] = field(default_factory=list[pa.Table])

    def add(self, rows: pa.Table | None) -> None:
        if rows is not None:
            self._latest.append(rows)
        if len(self._latest) == JOINED_BATCHES:
            self._tables.append(pa.concat_tables(self._latest).combine_chunks())
            self._latest.clear()

    def gathered(self) -> pa.Table | None:
        """Returns, on rank 0, the rows of all ranks in one table, in the order of the set and numbered from 0. None on
        other ranks, and if nothing was predicted."""
        tables = list(itertools.chain(*(gather_on_rank_0([*self._tables, *self._latest]) or [])))
        if not tables:
            return None
        table = pa.concat_tables(tables).sort_by("row")
        return table.set_column(table.column_names.index("row"), "row", pa.array(range(len(table)), pa.int64()))
