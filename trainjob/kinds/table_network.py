"""The common fields of all kinds that read rows of tables."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.kinds.facts import SCRATCH_RATE, Facts
from trainjob.kinds.text_network import NOT_TUNED as NOT_TUNED_ENCODER
from trainjob.kinds.text_network import Encoder, PooledEncoder
from trainjob.schema.base import OneOf, StrictModel
from trainjob.schema.fields import PositiveInt

TABM_RATE = 2e-3
"""The learning rate that TabM's authors recommend."""
_FINE_TUNING_RATE = 1e-4
NOT_TUNED = tuple(f"text.{name}" for name in NOT_TUNED_ENCODER if name != "freezeEncoder")


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
    text: PooledEncoder | None = None
    """The encoder of the columns whose type in `dataset.columns` is text; by default, a small one from scratch."""

    facts: ClassVar[Facts]

    @property
    def text_encoder(self) -> PooledEncoder:
        """`text` or its default."""
        return self.text or PooledEncoder(encoder=Encoder())

    @property
    def text_path(self) -> str:
        """The path of `text` in a TrainJob."""
        return f"spec.model.{self.facts.field}.text"

    @property
    def worker_modules(self) -> list[str]:
        """Modules of its network, which workers import before the driver has prepared the rows."""
        modules = [type(self).__module__.removesuffix("spec") + "network"]
        return modules if self.text is None else [*modules, "trainjob.kinds.table_encoder"]

    @property
    def library(self) -> None:
        return None

    @property
    def usual_learning_rate(self) -> float:
        return TABM_RATE

    @property
    def encoder_rate(self) -> float:
        """The learning rate of the text encoder's weights where TabM's is the usual one; otherwise in proportion."""
        return SCRATCH_RATE if self.text_encoder.pretrained is None else _FINE_TUNING_RATE
