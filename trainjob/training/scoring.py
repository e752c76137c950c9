"""Scoring a whole set over all workers: every row counts exactly once."""

from collections.abc import Callable, Iterator

import torch

from trainjob.data import Preprocessor
from trainjob.data.loaders import Batch
from trainjob.evaluation import Scores, scores
from trainjob.training.distributed import sum_over_ranks

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

    def score(self, module: torch.nn.Module, name: str) -> Scores:
        """Scores on all rows of the set, the same on every rank. Ranks may have unequal numbers of batches."""
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
        module.train(was_training)
        sum_over_ranks(confusion)
        sum_over_ranks(loss_sum)
        matrix = confusion.reshape(classes, classes).cpu().numpy()
        return scores(matrix, loss_sum.item(), self.preprocessor.classes)
