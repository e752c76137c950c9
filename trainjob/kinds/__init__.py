"""The kinds of model, one folder each."""

from trainjob.kinds.causal_lm.spec import CausalLM
from trainjob.kinds.facts import Ability, Direction, Facts
from trainjob.kinds.function.spec import Function
from trainjob.kinds.image_classifier.spec import ImageClassifier
from trainjob.kinds.text_classifier.spec import TextClassifier

KINDS: dict[str, Facts] = {
    spec.facts.field: spec.facts for spec in (TextClassifier, ImageClassifier, CausalLM, Function)
}
"""The facts of each kind by its field in `spec.model`."""


def kinds_with(ability: Ability) -> list[str]:
    return [name for name, facts in KINDS.items() if ability in facts.abilities]


def direction_of(metric: str) -> Direction:
    """Whether less of a metric is better, or more: as a kind of model says, or for a function's own metrics by name."""
    known = next((facts.metrics[metric] for facts in KINDS.values() if metric in facts.metrics), None)
    return known or ("min" if metric.endswith(("loss", "error", "perplexity")) else "max")
