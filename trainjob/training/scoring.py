"""Scoring a whole set over all workers: every row counts exactly once."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import torch

from trainjob.data import Preprocessor
from trainjob.data.loaders import Batch
from trainjob.evaluation import Scores, scores
from trainjob.runs.predictions import table
from trainjob.training.distributed import gather_on_rank_0, sum_over_ranks

SampleLosses = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""The loss of each row, from logits [n, classes] and labels [n], float32 [n]."""


class Scorer:
    """Scores a model on the sets of a run.

    `batches(name)` gives this rank's batches of the set `name`.
    """

    def __init__(
        self,
        batches: Callable[[str], Iterator[Batch]],
        preprocessor: Preprocessor,
        losses: SampleLosses,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.preprocessor = preprocessor
        self._batches, self._losses, self._device, self._dtype = batches, losses, device, dtype

    def score(self, module: torch.nn.Module, name: str, predicted: "Predicted | None" = None) -> Scores:
        """Scores on all rows of the set, the same on every rank. Ranks may have unequal numbers of batches.

        What is predicted for each row goes into `predicted`, where it is given.
        """
        classes = len(self.preprocessor.classes)
        confusion = torch.zeros(classes * classes, dtype=torch.int64, device=self._device)
        loss_sum = torch.zeros((), dtype=torch.float64, device=self._device)
        was_training = module.training
        module.eval()
        with torch.inference_mode():
            for batch in self._batches(name):
                moved = batch.to(self._device)
                with torch.autocast(self._device.type, self._dtype, enabled=self._dtype != torch.float32):
                    logits = module(**moved.inputs)
                loss_sum += self._losses(logits.float(), moved.labels).sum(dtype=torch.float64)
                cells = moved.labels * classes + logits.argmax(dim=1)
                confusion += torch.bincount(cells, minlength=classes * classes)
                if predicted is not None:
                    predicted.add(moved, logits.float())
        module.train(was_training)
        sum_over_ranks(confusion)
        sum_over_ranks(loss_sum)
        matrix = confusion.reshape(classes, classes).cpu().numpy()
        return scores(matrix, loss_sum.item(), self.preprocessor.classes)


@dataclass
class Predicted:
    """What a model predicts for the rows of a set, over all ranks."""

    probabilities: Callable[[torch.Tensor], torch.Tensor]
    """Of logits [n, C]."""
    _parts: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def add(self, batch: Batch, logits: torch.Tensor) -> None:
        assert batch.rows is not None
        surest, classes = self.probabilities(logits).max(dim=1)
        self._parts.append((batch.rows, *(tensor.cpu().numpy() for tensor in (batch.labels, classes, surest))))

    def gathered(self, classes: list[str]) -> pa.Table | None:
        """Rank 0's table of all ranks' rows, as `trainjob.runs.predictions` has it; None on the others."""
        everybodys = gather_on_rank_0(self._parts)
        if everybodys is None:
            return None
        rows, labels, predicted, probabilities = (
            np.concatenate(column) for column in zip(*itertools.chain(*everybodys), strict=True)
        )
        order = np.argsort(rows)
        return table(rows[order], predicted[order], classes, probabilities[order], labels[order])
