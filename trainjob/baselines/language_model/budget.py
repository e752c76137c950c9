"""Limits on the cost of requests."""

import threading
from dataclasses import dataclass, field

from trainjob.api.baselines import LanguageModel


class Spent(Exception):
    """A limit has been reached; nothing more is asked."""


@dataclass
class Budget:
    """Counts the requests of this process; saved answers cost nothing.

    A request is counted before it is sent, its tokens when the answer arrives: the requests in flight may therefore
    exceed a limit of tokens or money.
    """

    limits: LanguageModel
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reached: str = ""
    """The limit that stopped it."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def cost(self) -> float:
        """The cost, in the currency of the stated prices."""
        return price(self.limits, self.input_tokens, self.output_tokens)

    def request(self) -> None:
        """Counts a request that is about to be sent. Raises Spent where a limit has been reached."""
        limits = self.limits
        with self._lock:
            for name, used, limit in (
                ("maxRequests", self.requests, limits.max_requests),
                ("maxTokens", self.input_tokens + self.output_tokens, limits.max_tokens),
                ("maxCost", self.cost, limits.max_cost),
            ):
                if limit is not None and used >= limit:
                    self.reached = self.reached or name
                    raise Spent
            self.requests += 1

    def answered(self, input_tokens: int, output_tokens: int) -> None:
        with self._lock:
            self.input_tokens += input_tokens
            self.output_tokens += output_tokens


def price(model: LanguageModel, input_tokens: int, output_tokens: int) -> float:
    """The price of this many tokens, at the stated prices."""
    return (input_tokens * model.input_price + output_tokens * model.output_price) / 1e6
