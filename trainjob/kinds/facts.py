"""Facts about a kind of model for validation, defaults and messages, without importing its code."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["min", "max"]
"""Whether a metric is minimized or maximized."""
Ability = Literal["tuning", "distillation", "sharding", "compression", "pruning", "generation"]
"""Operations that a kind's models support. "sharding" also includes activation checkpointing; "generation" models
continue texts instead of predicting something for a row."""
WHY_NOT: dict[Ability, str] = {
    "tuning": (
        "a search sets fields of the TrainJob, and only your code knows the hyperparameters of a function; start a run "
        "for each value, and compare them with `trainjob compare`"
    ),
    "distillation": (
        "a student learns its teacher's probabilities of the classes; for another kind, take what `trainjob predict` "
        "writes with the teacher as labels"
    ),
    "sharding": (
        "for other kinds, each worker has a copy of the model; if that does not fit into memory, train a smaller one"
    ),
    "compression": (
        "compressed models compute the logits of classes; for another kind, train a smaller network instead"
    ),
    "pruning": "it removes heads and channels of a text classifier's encoder; --int8 makes others smaller, too",
}
"""Why other kinds lack an ability, and what to do instead. Nothing in a TrainJob needs "generation"."""
SCRATCH_RATE = 1e-3
"""Default learning rate of a network trained from scratch."""
TABLE_FORMATS = ("csv", "jsonl", "parquet")
"""Formats of tables."""
SPAN_FORMATS = (*TABLE_FORMATS, "conll")
"""Formats of texts with spans."""


@dataclass(frozen=True)
class ColumnFields:
    """The fields of `spec.dataset` that name a row's columns."""

    allowed: tuple[str, ...]
    required: Mapping[tuple[str, ...], str]
    """The error if none of these fields is set, reported at the first."""


@dataclass(frozen=True)
class RowForm:
    """One of the forms that the rows of a kind may have, by the columns that `spec.dataset` names."""

    noun: str
    """Such rows in messages: a plural."""
    columns: tuple[str, ...]
    """The fields of `spec.dataset` that are set for this form, of those that are set for some form of the kind."""
    metrics: Mapping[str, Direction]
    """Those of the kind's metrics that are computed of such rows."""
    unused: Mapping[str, float] = field(default_factory=dict[str, float])
    """The kind's fields that have no effect on such rows, with their defaults."""


@dataclass(frozen=True)
class Facts:
    """The facts of one kind of model."""

    field: str
    """The field in `spec.model`, which also names the kind in preprocessor.json."""
    noun: str
    """Its models' name in messages: singular, without an article."""
    hub_task: str | None
    """Its task on the Hugging Face hub."""
    scores: tuple[str, ...]
    """Its subclasses of `trainjob.evaluation.Scores`, each as `module:class`; empty if trainjob does not score it. If
    there are several, the labels decide."""
    needs_dataset: bool
    formats: tuple[str, ...]
    """Supported data formats; empty for all."""
    columns: ColumnFields
    metrics: Mapping[str, Direction]
    """Metrics reported after each validation, for `checkpoints.metric`; empty if any name may be reported."""
    abilities: frozenset[Ability]
    usual_baselines: tuple[str, ...]
    """Default baselines, as fields of `spec.baselines`."""
    other_baselines: tuple[str, ...] = ()
    """Other supported baselines."""
    errors: tuple[str, ...] = ()
    """Those of the metrics that are in the unit of the label or, with several labels, in standard deviations."""
    not_tuned: tuple[str, ...] = ()
    """Its fields that cannot be tuned: all trials share the prepared rows, and defaults that depend on a field are
    chosen once."""
    scales_losses: tuple[str, ...] = ()
    """Its fields that change what a loss measures: losses of models with different values cannot be compared."""
    row_forms: tuple[RowForm, ...] = ()
    """The forms that its rows may have, where metrics and settings depend on them."""
    takes_several_labels: bool = False
    """Whether a row may have any number of labels: `dataset.labels` then names columns of 0 and 1."""
    compares_rows: bool = False
    """Whether the loss of a row depends on the other rows of its batch, which then has no micro-batches."""
    kind_for_classes: str = ""
    """For a kind that learns numbers: the field in `spec.model` of the kind that learns classes from the same rows."""
    reads_pairs: bool = False
    """Whether a row to answer is a pair of texts where `dataset.textPair` is set."""
    is_users_loop: bool = False
    """Whether the user writes the training loop, so that trainjob knows only the metrics that the loop reports."""
    pretrained_part: tuple[str, ...] = ()
    """The path, within the kind's section, of the part whose field `pretrained` names a network."""
    earlier_names: tuple[str, ...] = ()
    """The kind's names in preprocessor.json of models saved by earlier versions."""

    @property
    def a_noun(self) -> str:
        """The noun with its article, such as `an embedder of texts`."""
        return f"{'an' if self.noun[0] in 'aeiou' else 'a'} {self.noun}"

    @property
    def path_of_pretrained(self) -> tuple[str, ...]:
        """The path in a TrainJob of the field that names a pretrained network."""
        return ("spec", "model", self.field, *self.pretrained_part, "pretrained")

    @property
    def baselines(self) -> tuple[str, ...]:
        """All supported baselines, as fields of `spec.baselines`."""
        return self.usual_baselines + self.other_baselines
