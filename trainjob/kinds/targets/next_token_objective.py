"""The objective of language models: the loss of each next token."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trainjob.data.batches.examples import IGNORED
from trainjob.evaluation import LanguageScores, language_scores
from trainjob.kinds.causal_lm.token_losses import losses_to_compile, token_losses
from trainjob.models.objective import Gather

if TYPE_CHECKING:
    from trainjob.data.batches.batch import Batch


class TokenTally:
    """Sums up the tokens' losses."""

    def __init__(self, device: torch.device) -> None:
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        self._tokens = torch.zeros((), dtype=torch.int64, device=device)

    def add(self, batch: "Batch", answers: Tensor) -> None:
        self._loss_sum += token_losses(answers, batch.labels).sum(dtype=torch.float64)
        self._tokens += (batch.labels != IGNORED).sum()

    def combine(self, gathered: Gather) -> None:
        losses, tokens = zip(*gathered((self._loss_sum.cpu(), self._tokens.cpu())), strict=True)
        self._loss_sum, self._tokens = torch.stack(losses).sum(), torch.stack(tokens).sum()

    def scores(self) -> LanguageScores:
        return language_scores(self._loss_sum.item(), int(self._tokens.item()))


class NextTokenObjective:
    """Trains on, and is scored by, the next token of each text."""

    unit = "tokens"

    def __init__(self, *, compiled: bool = False) -> None:
        self._losses = torch.compile(losses_to_compile) if compiled else token_losses

    def losses(self, answers: Tensor, batch: "Batch") -> Tensor:
        return self._losses(answers, batch.labels)

    def tally(self, device: torch.device) -> TokenTally:
        return TokenTally(device)

    def predictions(self, answers: Tensor, batch: "Batch") -> None:
        return None
