"""Rules across the fields of a spec. `trainjob validate` and API servers both check them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

from trainjob.api.cluster import DURATION, UNITS, seconds
from trainjob.api.tracking import Tracker
from trainjob.api.tuning import BATCH_SIZE, HEADS, HIDDEN_SIZE, TUNABLE, OptionalPart, candidates, optional_parts
from trainjob.kinds import KINDS, kinds_with
from trainjob.kinds.classifier import ONE_CLASS_LOSS
from trainjob.kinds.facts import WHY_NOT, Ability, Facts
from trainjob.kinds.text_network import Encoder
from trainjob.schema.expressions import Expression, any_of, escaped, given, number, value, value_or_default
from trainjob.schema.rules import FieldRule, remainder

if TYPE_CHECKING:
    from trainjob.api.trainjob import TrainJobSpec

IMMUTABLE = "cannot be changed once the TrainJob exists"
"""The API server's message for a change of a fixed field."""


def _one_of_kinds(kinds: Sequence[str]) -> Expression:
    return any_of(*(given(f"model.{kind}") for kind in kinds))


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _is_for(field: str, kinds: Sequence[str], unset: Expression, why: str = "") -> FieldRule:
    """A field may be set only for some kinds of model."""
    message = f"is for {_listed(kinds)}" + (f": {why}" if why else "")
    return FieldRule(field, message, unset | _one_of_kinds(kinds))


def _needs(ability: Ability, field: str, unset: Expression) -> FieldRule:
    """A field may be set only for kinds of model with an ability."""
    return _is_for(field, kinds_with(ability), unset, WHY_NOT[ability])


_HAS_TEXT_COLUMN = Expression(
    "(has(self.dataset) && has(self.dataset.columns) && "
    "self.dataset.columns.exists(name, self.dataset.columns[name] == 'text'))",
    lambda spec: spec.dataset is not None and "text" in (spec.dataset.columns or {}).values(),
)


def _rules_of_kind(kind: Facts) -> Iterator[FieldRule]:
    name = f"model.{kind.field}"
    others = ~given(name)
    if kind.needs_dataset:
        yield FieldRule("dataset", f"is required by {name}", others | given("dataset"))
    for fields, message in kind.columns.required.items():
        found = any_of(*(given(f"dataset?.{field}") for field in fields))
        yield FieldRule(f"dataset.{fields[0]}", message, others | ~given("dataset") | found)
    if kind.formats:
        unset = ~given("dataset?.train.format")
        fits = value("dataset.train.format").is_one_of(*kind.formats)
        *most, last = kind.formats
        message = f"must be {', '.join(most)} or {last} for {name}"
        yield FieldRule("dataset.train.format", message, others | unset | fits)
    if kind.pretrained_part:
        part = ".".join((name, *kind.pretrained_part))
        unread = ~given(part.replace(name, f"{name}?"))
        yield FieldRule(part, "no column in dataset.columns has the type text", unread | _HAS_TEXT_COLUMN)
    if kind.takes_several_labels:
        message = f"must not be crossEntropy with dataset.labels: {ONE_CLASS_LOSS}"
        yield FieldRule(f"{name}.loss", message, ~given("dataset?.labels") | ~given(f"{name}?.loss?.crossEntropy"))
    if kind.metrics:
        fits = value("checkpoints.metric").is_one_of(*kind.metrics)
        yield FieldRule("checkpoints.metric", f"must be one of {', '.join(kind.metrics)} for {name}", others | fits)


_COLUMNS = list(dict.fromkeys(field for kind in KINDS.values() for field in kind.columns.allowed))
_CLEANS = any_of(*(value(f"dataset.cleaning.{flag}") for flag in ("lowercase", "removeURLs", "removeHTML")))


def _rule_of_column(field: str) -> FieldRule:
    """A dataset field may be set only for kinds of model whose rows have it."""
    kinds = [f"model.{name}" for name, kind in KINDS.items() if field in kind.columns.allowed]
    unset = ~given("dataset") | ~_CLEANS if field == "cleaning" else ~given(f"dataset?.{field}")
    return FieldRule(f"dataset.{field}", f"is for {_listed(kinds)}", unset | any_of(*map(given, kinds)))


def _rule_of_baseline(field: str) -> FieldRule:
    kinds = [name for name, kind in KINDS.items() if field in kind.baselines]
    return _is_for(f"baselines.{field}", kinds, ~given(f"baselines?.{field}"))


_BASELINES = dict.fromkeys(field for kind in KINDS.values() for field in kind.baselines)


def _multiple_of_workers(spec: "TrainJobSpec") -> str:
    return remainder(spec.training.batch_size, spec.workers.count)


def _workers_of_pods(spec: "TrainJobSpec") -> str:
    assert spec.workers.per_pod is not None
    return remainder(spec.workers.count, spec.workers.per_pod)


def _is_not_longer(one: str, other: str) -> Expression:
    """One duration does not exceed another."""

    def in_cel(path: str) -> str:
        units = ", ".join(f"'{unit}': {number}" for unit, number in UNITS.items())
        text = value(path).cel
        return f"int({text}.substring(0, size({text}) - 1)) * {{{units}}}[{text}.substring(size({text}) - 1)]"

    def in_seconds(path: str) -> Callable[["TrainJobSpec"], int]:
        text = value(path)
        return lambda spec: seconds(text.of(spec))

    durations = " && ".join(f"{value(path).cel}.matches('{DURATION}')" for path in (one, other))
    shorter = Expression(in_cel(one), in_seconds(one)) <= Expression(in_cel(other), in_seconds(other))
    return Expression(f"(!({durations}) || {shorter.cel})", shorter.of)


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
        f"(!has(self.tuning) || ![self.tuning.parameters].exists(p, {tuned}) || ({there}))",
        lambda spec: spec.tuning is None or spec.tuning.tuned.keys().isdisjoint(inside) or spec.has_part(part.path),
    )
    return FieldRule("tuning.parameters", f"the spec has no {part.path} whose fields could be tuned", condition)


def _is_tuned(path: str) -> str:
    return f"has(self.tuning.parameters.{escaped(path)})"


def _candidates(path: str, otherwise: str) -> str:
    """In CEL, the candidate values of a field that takes only lists; the list `otherwise` if it is not tuned."""
    parameter = f"self.tuning.parameters.{escaped(path)}"
    lists = f"has({parameter}.choice) ? {parameter}.choice : has({parameter}.grid) ? {parameter}.grid : []"
    return f"(!{_is_tuned(path)} ? {otherwise} : {lists})"


def _wrong_batch_sizes(spec: "TrainJobSpec") -> list[int]:
    if spec.tuning is None:
        return []
    return [size for size in candidates(spec.tuning, BATCH_SIZE, 0) if size % spec.workers.count]


def _wrong_widths(spec: "TrainJobSpec") -> list[tuple[int, int]]:
    """Width and heads."""
    encoder = spec.model.text_classifier.encoder if spec.model.text_classifier is not None else None
    if spec.tuning is None or encoder is None:
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
    f"(!has(self.tuning) || !{given('model.textClassifier?.encoder').cel} || "
    f"{_WIDTHS}.all(width, {_HEADS}.all(heads, heads < 1 || width % heads == 0)))",
    lambda spec: not _wrong_widths(spec),
)
_USERS_LOOPS = [name for name, kind in KINDS.items() if kind.is_users_loop]
_BUILT_IN_TRACKERS = (name for name in Tracker.choice_fields() if name != "custom")
_TRACKER_NAME = (
    "(has({0}.custom) ? {0}.custom.name : "
    + "".join(f"has({{0}}.{name}) ? '{name}' : " for name in _BUILT_IN_TRACKERS)
    + "'')"
)
_HAS_TRACKERS_OF_DIFFERENT_NAMES = Expression(
    "(!has(self.tracking) || self.tracking.all(one, self.tracking.exists_one(other, "
    f"{_TRACKER_NAME.format('one')} == {_TRACKER_NAME.format('other')})))",
    lambda spec: len({tracker.name for tracker in spec.tracking}) == len(spec.tracking),
)
_IS_WHOLE = value("training.sharding").is_one_of("none")

SPEC_RULES: tuple[FieldRule, ...] = (
    FieldRule(
        "workers.perPod",
        "must divide workers.count",
        ~given("workers.perPod") | value("workers.count").is_multiple_of(value("workers.perPod")),
        _workers_of_pods,
    ),
    FieldRule(
        "workers.minimum",
        "must not be more than workers.count",
        ~given("workers.minimum") | (value("workers.minimum") <= value("workers.count")),
        lambda spec: f"{spec.workers.minimum} > {spec.workers.count}",
    ),
    FieldRule(
        "workers.minimum",
        "cannot be set together with tuning, whose trials start one at a time",
        ~given("workers.minimum") | ~given("tuning"),
    ),
    FieldRule(
        "deadlines.start",
        "must not be longer than deadlines.total",
        ~given("deadlines.start") | ~given("deadlines.total") | _is_not_longer("deadlines.start", "deadlines.total"),
        lambda spec: f"{spec.deadlines.start} > {spec.deadlines.total}",
    ),
    FieldRule(
        "training.batchSize",
        "must be a multiple of workers.count",
        ~given("training.batchSize") | value("training.batchSize").is_multiple_of(value("workers.count")),
        _multiple_of_workers,
    ),
    FieldRule(
        "training.sharding",
        "needs at least 2 workers (workers.count) to share the model",
        ~value("training.sharding").is_one_of("full") | ~(value("workers.count") <= number(1)),
    ),
    _needs("sharding", "training.sharding", _IS_WHOLE),
    FieldRule("training.compile", "cannot be combined with training.sharding", _IS_WHOLE | ~value("training.compile")),
    FieldRule("training.cpuOffload", "needs training.sharding", ~value("training.cpuOffload") | ~_IS_WHOLE),
    _is_for("training.activationCheckpointing", kinds_with("sharding"), ~value("training.activationCheckpointing")),
    *map(_rule_of_baseline, _BASELINES),
    FieldRule(
        "dataset.unlabelled",
        "needs training.distillation, whose teacher labels these rows",
        ~given("dataset?.unlabelled") | given("training.distillation"),
    ),
    _needs("distillation", "training.distillation", ~given("training.distillation")),
    _needs("tuning", "tuning", ~given("tuning")),
    *(_tuned_part(part, inside) for part, inside in _TUNED_PARTS.items()),
    FieldRule(
        "tuning.parameters",
        f"{BATCH_SIZE} must be a multiple of workers.count",
        _TUNES_BATCH_SIZES_THAT_FIT,
        lambda spec: ", ".join(f"{size} % {spec.workers.count}" for size in _wrong_batch_sizes(spec)),
    ),
    FieldRule(
        "tuning.parameters",
        f"{HIDDEN_SIZE} must be a multiple of every heads",
        _TUNES_WIDTHS_THAT_FIT,
        lambda spec: ", ".join(f"{width} % {heads}" for width, heads in _wrong_widths(spec)),
    ),
    *(rule for kind in KINDS.values() for rule in _rules_of_kind(kind)),
    *map(_rule_of_column, _COLUMNS),
    _is_for("code", _USERS_LOOPS, ~given("code")),
    _is_for("requirements", _USERS_LOOPS, ~given("requirements")),
    FieldRule(
        "dataset.messages",
        "needs a pretrained model: a tokenizer from scratch has no chat template",
        ~given("dataset?.messages") | ~given("model.causalLM?.decoder"),
    ),
    FieldRule("tracking", "names a tracker twice; each may be there once", _HAS_TRACKERS_OF_DIFFERENT_NAMES),
    FieldRule(
        "dataset.loader",
        "a function gets its rows from Ray Data",
        ~given("model.function") | ~given("dataset") | ~value("dataset.loader").is_one_of("dataLoader"),
    ),
    FieldRule(
        "dataset.onBadRows",
        "a function gets its rows as they are, and drops what it cannot use itself",
        ~given("model.function") | ~given("dataset") | ~value("dataset.onBadRows").is_one_of("drop"),
    ),
)
