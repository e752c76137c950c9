"""Facts of a kind of model: what validation, defaults, messages and other rooms know of it without its code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Direction = Literal["min", "max"]
"""Whether less of a metric is better, or more."""
Ability = Literal["tuning", "distillation", "sharding", "compression", "pruning", "generation"]
"""What can be done with the models of a kind. Those of "sharding" have layers, whose activations can also be computed
again; those of "generation" continue texts instead of predicting something for a row."""
SCRATCH_RATE = 1e-3
"""Default learning rate of a network that is trained from scratch."""
TABLES = ("csv", "jsonl", "parquet")
"""Formats of tables."""


@dataclass(frozen=True)
class Columns:
    """The fields of `spec.dataset` that say what a row holds."""

    allowed: tuple[str, ...]
    required: Mapping[tuple[str, ...], str]
    """What the error says where none of these fields is set; it names the first."""


@dataclass(frozen=True)
class Facts:
    """One kind of model. It is called by its field in `spec.model`."""

    field: str
    """It also names the kind in preprocessor.json."""
    noun: str
    """What messages call its models: a singular without an article."""
    hub_task: str | None
    """Its task on the Hugging Face hub."""
    scores: str | None
    """Its scores, a subclass of `trainjob.evaluation.Scores`, as `module:class`; None if trainjob does not score it."""
    needs_dataset: bool
    formats: tuple[str, ...]
    """Formats that its rows may have; empty if all."""
    columns: Columns
    metrics: Mapping[str, Direction]
    """What it reports after each validation, for `checkpoints.metric`; empty if any name may be reported."""
    abilities: frozenset[Ability]
    usual_baselines: tuple[str, ...]
    """Fields of `spec.baselines` that its models are compared with by default."""
    other_baselines: tuple[str, ...] = ()
    """Those that it can be compared with besides."""
    not_tuned: tuple[str, ...] = ()
    """Fields of its own that a search may not set: all trials share the prepared rows, and defaults that follow from a
    field are chosen once."""
    is_users_loop: bool = False
    """Whether the user writes the training loop, of which trainjob knows what it reports."""
    earlier_names: tuple[str, ...] = ()
    """Names of the kind in the preprocessor.json of models that earlier versions saved."""

    @property
    def baselines(self) -> tuple[str, ...]:
        """Fields of `spec.baselines` that its models can be compared with."""
        return self.usual_baselines + self.other_baselines
