"""The scores of a language model, from the losses of tokens."""

import math
from typing import ClassVar

from trainjob.evaluation.estimates import Lead
from trainjob.evaluation.scores.base import WHEN_SCORED, Measure, Scores, check_finite
from trainjob.formatting import count, score

MAX_LOSS = 700.0
"""The perplexity of a larger loss overflows to infinity."""


class LanguageScores(Scores):
    """How well a language model predicts each token of a set from those before it in its text."""

    section: ClassVar[str] = "tokens.html.j2"
    caution: ClassVar[str] = "The text it generates may be wrong, and may repeat training data."

    tokens: int
    """Tokens predicted; a text's end is one."""
    loss: float
    """Mean cross-entropy, in nats for each token."""
    perplexity: float
    """e to the power of the loss: of how many equally likely tokens it is as unsure."""

    @property
    def purpose(self) -> str:
        return "continue texts"

    def as_metrics(self, set_name: str) -> dict[str, float]:
        return {f"{set_name}_loss": self.loss, f"{set_name}_perplexity": self.perplexity}

    def size(self) -> tuple[str, int]:
        return "tokens", self.tokens

    def measures(self) -> list[Measure]:
        return [Measure("loss", "loss", self.loss), Measure("perplexity", "perplexity", self.perplexity)]

    def in_brief(self) -> str:
        return f"perplexity {score(self.perplexity)}   loss {score(self.loss)}   {count(self.tokens)} tokens"

    def headline(self) -> str:
        scores = f"perplexity {self.perplexity:.4f}, loss {self.loss:.4f} in nats for each token"
        return f"{count(self.tokens)} tokens: {scores}"

    def tiles(self) -> list[tuple[str, str]]:
        return [("Perplexity", score(self.perplexity)), ("Loss", score(self.loss))]

    def compared(self, lead: Lead | None) -> dict[str, str]:
        return {"Loss": score(self.loss), "Perplexity": score(self.perplexity)}


def language_scores(loss_sum: float, tokens: int) -> LanguageScores:
    """Raises Diverged if the loss is not finite."""
    check_finite("the loss", loss_sum, WHEN_SCORED)
    loss = loss_sum / max(tokens, 1)
    return LanguageScores(tokens=tokens, loss=loss, perplexity=math.exp(min(loss, MAX_LOSS)))
