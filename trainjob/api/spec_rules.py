"""Rules across the fields of a spec. `trainjob validate` and API servers both check them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trainjob.api.cluster import DURATION, UNITS, seconds
from trainjob.api.tracking import Tracker
from trainjob.api.tuning_rules import TUNING_RULES, is_tuned
from trainjob.api.wording import joined
from trainjob.kinds import KINDS, kinds_with
from trainjob.kinds.classifier import ONE_CLASS_LOSS
from trainjob.kinds.facts import WHY_NOT, Ability, Facts, RowForm
from trainjob.schema.expressions import Expression, any_of, given, number, value
from trainjob.schema.rules import FieldRule, remainder

IMMUTABLE = "cannot be changed once the TrainJob exists"
"""The API server's message for a change of a fixed field."""


def _one_of_kinds(kinds: Sequence[str]) -> Expression:
    return any_of(*(given(f"model.{kind}") for kind in kinds))


def _is_for(field: str, kinds: Sequence[str], unset: Expression, why: str = "") -> FieldRule:
    """A field may be set only for some kinds of model."""
    message = f"is for {joined(kinds)}" + (f": {why}" if why else "")
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
    if kind.metrics and not kind.row_forms:
        fits = value("checkpoints.metric").is_one_of(*kind.metrics)
        yield FieldRule("checkpoints.metric", f"must be one of {', '.join(kind.metrics)} for {name}", others | fits)
    for form in kind.row_forms:
        yield from _rules_of_form(kind, form)


def _rules_of_form(kind: Facts, form: RowForm) -> Iterator[FieldRule]:
    name = f"model.{kind.field}"
    others = {field for each in kind.row_forms for field in each.columns} - set(form.columns)
    is_other = ~given(name) | any_of(
        *(~given(f"dataset?.{field}") for field in form.columns),
        *(given(f"dataset?.{field}") for field in sorted(others)),
    )
    fits = value("checkpoints.metric").is_one_of(*form.metrics)
    message = f"must be one of {', '.join(form.metrics)} for {name} of {form.noun}"
    yield FieldRule("checkpoints.metric", message, is_other | fits)
    for field, default in form.unused.items():
        path, no_effect = f"{name}.{field}", f"has no effect on {form.noun}: leave it out"
        yield FieldRule(path, no_effect, is_other | value(path).equals(number(default)))
        yield FieldRule("tuning.parameters", f"{path} {no_effect}", is_other | ~is_tuned(path))


_COLUMNS = list(dict.fromkeys(field for kind in KINDS.values() for field in kind.columns.allowed))
_CLEANS = any_of(*(value(f"dataset.cleaning.{flag}") for flag in ("lowercase", "removeURLs", "removeHTML")))


def _rule_of_column(field: str) -> FieldRule:
    """A dataset field may be set only for kinds of model whose rows have it."""
    kinds = [f"model.{name}" for name, kind in KINDS.items() if field in kind.columns.allowed]
    unset = ~given("dataset") | ~_CLEANS if field == "cleaning" else ~given(f"dataset?.{field}")
    return FieldRule(f"dataset.{field}", f"is for {joined(kinds)}", unset | any_of(*map(given, kinds)))


def _rule_of_baseline(field: str) -> FieldRule:
    return _is_for(f"baselines.{field}", _kinds_with_baseline(field), ~given(f"baselines?.{field}"))


def _kinds_with_baseline(field: str) -> list[str]:
    return [name for name, kind in KINDS.items() if field in kind.baselines]


_BASELINES = dict.fromkeys(field for kind in KINDS.values() for field in kind.baselines)


def _is_not_longer(one: str, other: str) -> Expression:
    """One duration does not exceed another."""

    def in_cel(path: str) -> str:
        units = ", ".join(f"'{unit}': {number}" for unit, number in UNITS.items())
        text = value(path).cel
        return f"int({text}.substring(0, size({text}) - 1)) * {{{units}}}[{text}.substring(size({text}) - 1)]"

    def in_seconds(path: str) -> Callable[[Any], int]:
        text = value(path)
        return lambda spec: seconds(text.of(spec))

    durations = " && ".join(f"{value(path).cel}.matches('{DURATION}')" for path in (one, other))
    shorter = Expression(in_cel(one), in_seconds(one)) <= Expression(in_cel(other), in_seconds(other))
    return Expression(f"(!({durations}) || {shorter.cel})", shorter.of)


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
        lambda spec: remainder(spec.workers.count, spec.workers.per_pod),
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
        lambda spec: remainder(spec.training.batch_size, spec.workers.count),
    ),
    FieldRule(
        "training.sharding",
        "needs at least 2 workers (workers.count) to share the model",
        ~value("training.sharding").is_one_of("full") | ~(value("workers.count") <= number(1)),
    ),
    _needs("sharding", "training.sharding", _IS_WHOLE),
    FieldRule("training.compile", "cannot be combined with training.sharding", _IS_WHOLE | ~value("training.compile")),
    FieldRule("training.cpuOffload", "needs training.sharding", ~value("training.cpuOffload") | ~_IS_WHOLE),
    _is_for(
        "training.activationCheckpointing",
        kinds_with("sharding"),
        ~value("training.activationCheckpointing"),
        "the layers of other kinds keep their activations; if these do not fit into memory, lower training.batchSize",
    ),
    *map(_rule_of_baseline, _BASELINES),
    FieldRule(
        "baselines.languageModel",
        "chooses one class for each text, and rows with dataset.labels have several labels: leave it out",
        ~(given("baselines?.languageModel") & given("dataset?.labels"))
        | ~_one_of_kinds(_kinds_with_baseline("languageModel")),
    ),
    FieldRule(
        "dataset.unlabelled",
        "needs training.distillation, whose teacher labels these rows",
        ~given("dataset?.unlabelled") | given("training.distillation"),
    ),
    _needs("distillation", "training.distillation", ~given("training.distillation")),
    _needs("tuning", "tuning", ~given("tuning")),
    *TUNING_RULES,
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
