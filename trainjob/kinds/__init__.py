"""The kinds of model, one folder each."""

from typing import get_args

from trainjob.kinds.facts import Ability, Direction, Facts
from trainjob.kinds.model import KindSpec

_SPECS = get_args(KindSpec)

KINDS: dict[str, Facts] = {spec.facts.field: spec.facts for spec in _SPECS}
"""The facts of each kind by its field in `spec.model`."""
PACKAGES: dict[str, str] = {spec.facts.field: spec.__module__.rpartition(".")[0] for spec in _SPECS}
"""The package of each kind by the same field."""


def saved_kind(name: str) -> str:
    """The kind that preprocessor.json calls `name`. Raises KeyError for an unknown one."""
    fields = {earlier: facts.field for facts in KINDS.values() for earlier in facts.earlier_names}
    return KINDS[fields.get(name, name)].field


def kinds_with(ability: Ability) -> list[str]:
    return [name for name, facts in KINDS.items() if ability in facts.abilities]


def direction_of(metric: str) -> Direction:
    """Whether a lower or a higher value of a metric is better: from the facts of the kinds or, for a function's own
    metrics, by name."""
    known = next((facts.metrics[metric] for facts in KINDS.values() if metric in facts.metrics), None)
    return known or ("min" if metric.endswith(("loss", "error", "perplexity")) else "max")
