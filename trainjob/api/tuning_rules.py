"""Rules on the parameters of a search (`spec.tuning`)."""

from itertools import product
from typing import Any

from trainjob.api.tuning import BATCH_SIZE, HEADS, HIDDEN_SIZE, TUNABLE, OptionalPart, candidates, optional_parts
from trainjob.kinds import KINDS
from trainjob.kinds.text_network import Encoder
from trainjob.schema.expressions import Expression, escaped, given, value, value_or_default
from trainjob.schema.rules import FieldRule, RuleGroup

LOSSES = ("validation_loss", "train_loss")
_TUNED_PARTS: dict[OptionalPart, list[str]] = {}
"""The tunable fields directly inside each part that must be set for them."""
for _path in TUNABLE:
    if _parts := optional_parts(_path):
        _TUNED_PARTS.setdefault(_parts[-1], []).append(_path)


def _tuned_part(part: OptionalPart, inside: list[str]) -> FieldRule:
    """A part with tuned fields is set."""
    parents = part.path.rpartition(".")[0]
    root, *names = part.path.split(".")
    chain = " && ".join(f"has(self.{'.'.join([root, *names[: depth + 1]])})" for depth in range(len(names)))
    there = f"{chain} || !has(self.{parents})" if part.is_default else chain
    tuned = " || ".join(f"has(p.{escaped(path)})" for path in inside)
    condition = Expression(
        f"(![self.tuning.parameters].exists(p, {tuned}) || ({there}))",
        lambda spec: spec.tuning.tuned.keys().isdisjoint(inside) or spec.has_part(part.path),
    )
    return FieldRule("tuning.parameters", f"the spec has no {part.path} whose fields could be tuned", condition)


def is_tuned(path: str) -> Expression:
    """Whether a field, by its path, is a parameter of the search, if there is a search."""
    return given("tuning") & _is_parameter(path)


def _is_parameter(path: str) -> Expression:
    """The same in a spec that has a search."""
    return Expression(f"has(self.tuning.parameters.{escaped(path)})", lambda spec: path in spec.tuning.tuned)


def _rule_of_loss(path: str) -> FieldRule:
    """Trials are not compared by a loss that a tuned field changes."""
    message = (
        f"must not be a loss where {path} is tuned: losses with different values of it cannot be compared; choose "
        "another metric"
    )
    return FieldRule(
        "checkpoints.metric", message, ~_is_parameter(path) | ~value("checkpoints.metric").is_one_of(*LOSSES)
    )


def _candidates(path: str, otherwise: str) -> str:
    """In CEL, the candidate values of a field that takes only lists; the list `otherwise` if it is not tuned."""
    parameter = f"self.tuning.parameters.{escaped(path)}"
    lists = f"has({parameter}.choice) ? {parameter}.choice : has({parameter}.grid) ? {parameter}.grid : []"
    return f"(!{_is_parameter(path).cel} ? {otherwise} : {lists})"


def _wrong_batch_sizes(spec: Any) -> list[int]:
    if spec.tuning is None:
        return []
    return [size for size in candidates(spec.tuning, BATCH_SIZE, 0) if size % spec.workers.count]


def _wrong_widths(spec: Any) -> list[tuple[int, int]]:
    """Width and heads."""
    encoder = spec.model.text_classifier.encoder if spec.model.text_classifier is not None else None
    if encoder is None:
        return []
    widths = candidates(spec.tuning, HIDDEN_SIZE, encoder.hidden_size)
    heads = candidates(spec.tuning, HEADS, encoder.heads)
    return [(width, number) for width, number in product(widths, heads) if width % number]


_TUNES_BATCH_SIZES_THAT_FIT = Expression(
    "(!has(self.tuning) || self.workers.count < 1 || "
    f"{_candidates(BATCH_SIZE, '[]')}.all(size, size % self.workers.count == 0))",
    lambda spec: not _wrong_batch_sizes(spec),
)
_ENCODER = "self.model.textClassifier.encoder"
_WIDTHS = _candidates(HIDDEN_SIZE, f"[{value_or_default(Encoder, 'hiddenSize', _ENCODER)}]")
_HEADS = _candidates(HEADS, f"[{value_or_default(Encoder, 'heads', _ENCODER)}]")
_TUNES_WIDTHS_THAT_FIT = Expression(
    f"(!{given('model.textClassifier?.encoder').cel} || "
    f"{_WIDTHS}.all(width, {_HEADS}.all(heads, heads < 1 || width % heads == 0)))",
    lambda spec: not _wrong_widths(spec),
)

TUNING_RULES = RuleGroup(
    given("tuning"),
    (
        *(_tuned_part(part, inside) for part, inside in _TUNED_PARTS.items()),
        *(_rule_of_loss(f"model.{kind.field}.{field}") for kind in KINDS.values() for field in kind.scales_losses),
        FieldRule(
            "tuning.parameters",
            f"{HIDDEN_SIZE} must be a multiple of every heads",
            _TUNES_WIDTHS_THAT_FIT,
            lambda spec: ", ".join(f"{width} % {heads}" for width, heads in _wrong_widths(spec)),
        ),
    ),
)
TUNED_BATCH_SIZES_FIT = FieldRule(
    "tuning.parameters",
    f"{BATCH_SIZE} must be a multiple of workers.count",
    _TUNES_BATCH_SIZES_THAT_FIT,
    lambda spec: ", ".join(f"{size} % {spec.workers.count}" for size in _wrong_batch_sizes(spec)),
)
"""Not in the group, because API servers check it again whenever the workers change."""
