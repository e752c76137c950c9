"""The part of a spec that is the same for all models of the rows of a table."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.schema.base import OneOf, StrictModel
from trainjob.schema.fields import PositiveInt

TABM_RATE = 2e-3
"""The learning rate that TabM's authors recommend."""


class TabM(StrictModel):
    """TabM (Gorishniy et al., 2024): an ensemble of networks that share most of their weights, on piecewise-linear
    embeddings of numbers."""

    members: Annotated[int, Field(ge=1, le=256)] = 32
    """Networks of the ensemble."""
    blocks: Annotated[int, Field(ge=1, le=64)] = 2
    """Hidden layers of each network."""
    hidden_size: PositiveInt = 256
    """Width of each hidden layer."""
    embedding_size: PositiveInt = 16
    """Width of the embedding of each number."""


class TableNetwork(OneOf):
    """A network for tables."""

    choices: ClassVar[tuple[str, ...]] = ("tabm",)

    tabm: TabM | None = None
    """An ensemble of small networks."""

    @property
    def library(self) -> None:
        return None

    @property
    def usual_learning_rate(self) -> float:
        return TABM_RATE
