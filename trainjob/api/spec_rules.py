"""Rules across the fields of a spec. `trainjob validate` and API servers both check them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from trainjob.api.cluster import DURATION, UNITS, seconds
from trainjob.api.tracking import Tracker
from trainjob.api.tuning_rules import TUNED_BATCH_SIZES_FIT, TUNING_RULES, is_tuned
from trainjob.api.wording import joined
from trainjob.kinds import KINDS, kinds_with
from trainjob.kinds.classifier import ONE_CLASS_LOSS
from trainjob.kinds.facts import WHY_NOT, Ability, Facts, RowForm
from trainjob.schema.expressions import Expression, all_of, any_of, given, number, value
from trainjob.schema.rules import FieldRule, RuleGroup, remainder

IMMUTABLE = "cannot be changed once the TrainJob exists"
"""The API server's message for a change of a fixed field."""


def _one_of_kinds(kinds: Sequence[str]) -> Expression:
    return any_of(*(given(f"model.{kind}") for kind in kinds))


def _is_for(field: str, kinds: Sequence[str], unset: Expression | None = None, why: str = "") -> FieldRule:
    """A field may be set only for some kinds of model. In a group of rules for a set field, `unset` is left out."""
    message, fits = f"is for {joined(kinds)}" + (f": {why}" if why else ""), _one_of_kinds(kinds)
    return FieldRule(field, message, fits if unset is None else unset | fits)


def _needs(ability: Ability, field: str, unset: Expression | None = None) -> FieldRule:
    """A field may be set only for kinds of model with an ability."""
    return _is_for(field, kinds_with(ability), unset, WHY_NOT[ability])


_HAS_TEXT_COLUMN = Expression(
    "(has(self.dataset.columns) && self.dataset.columns.exists(name, self.dataset.columns[name] == 'text'))",
    lambda spec: "text" in (spec.dataset.columns or {}).values(),
)


def _group_of_kind(kind: Facts) -> RuleGroup:
    name = f"model.{kind.field}"
    rules: list[FieldRule | RuleGroup] = []
    if kind.needs_dataset:
        rules.append(FieldRule("dataset", f"is required by {name}", given("dataset")))
    if of_dataset := tuple(_rules_of_dataset(kind)):
        rules.append(RuleGroup(given("dataset"), of_dataset))
    if kind.metrics and not kind.row_forms:
        rules.append(_rule_of_metric(kind.metrics, name))
    return RuleGroup(given(name), tuple(rules))


def _rule_of_metric(metrics: Collection[str], model: str) -> FieldRule:
    fits = value("checkpoints.metric").is_one_of(*metrics)
    return FieldRule("checkpoints.metric", f"must be one of {', '.join(metrics)} for {model}", fits)


def _rules_of_dataset(kind: Facts) -> Iterator[FieldRule | RuleGroup]:
    name = f"model.{kind.field}"
    for fields, message in kind.columns.required.items():
        yield FieldRule(f"dataset.{fields[0]}", message, any_of(*(given(f"dataset.{field}") for field in fields)))
    if kind.formats:
        fits = value("dataset.train.format").is_one_of(*kind.formats)
        *most, last = kind.formats
        message = f"must be {', '.join(most)} or {last} for {name}"
        yield FieldRule("dataset.train.format", message, ~given("dataset.train.format") | fits)
    if kind.pretrained_part:
        part = ".".join((name, *kind.pretrained_part))
        yield FieldRule(part, "no column in dataset.columns has the type text", ~given(part) | _HAS_TEXT_COLUMN)
    if kind.takes_several_labels:
        message = f"must not be crossEntropy with dataset.labels: {ONE_CLASS_LOSS}"
        yield FieldRule(f"{name}.loss", message, ~given("dataset.labels") | ~given(f"{name}.loss?.crossEntropy"))
    if kind.is_users_loop:
        loader = ~value("dataset.loader").is_one_of("dataLoader")
        yield FieldRule("dataset.loader", "a function gets its rows from Ray Data", loader)
        message = "a function gets its rows as they are, and drops what it cannot use itself"
        yield FieldRule("dataset.onBadRows", message, ~value("dataset.onBadRows").is_one_of("drop"))
    for form in kind.row_forms:
        yield _group_of_form(kind, form)


def _group_of_form(kind: Facts, form: RowForm) -> RuleGroup:
    """Rules of rows with the columns of one form, and with no column of another."""
    name = f"model.{kind.field}"
    others = {field for each in kind.row_forms for field in each.columns} - set(form.columns)
    has_form = all_of(
        *(given(f"dataset.{field}") for field in form.columns),
        *(~given(f"dataset.{field}") for field in sorted(others)),
    )
    metric = _rule_of_metric(form.metrics, f"{name} of {form.noun}")
    return RuleGroup(has_form, (metric, *_rules_of_unused(name, form)))


def _rules_of_unused(name: str, form: RowForm) -> Iterator[FieldRule]:
    for field, default in form.unused.items():
        path, no_effect = f"{name}.{field}", f"has no effect on {form.noun}: leave it out"
        yield FieldRule(path, no_effect, value(path).equals(number(default)))
        yield FieldRule("tuning.parameters", f"{path} {no_effect}", ~is_tuned(path))


_COLUMNS = list(dict.fromkeys(field for kind in KINDS.values() for field in kind.columns.allowed))
_CLEANS = any_of(*(value(f"dataset.cleaning.{flag}") for flag in ("lowercase", "removeURLs", "removeHTML")))


def _rule_of_column(field: str) -> FieldRule:
    """A dataset field may be set only for kinds of model whose rows have it."""
    kinds = [f"model.{name}" for name, kind in KINDS.items() if field in kind.columns.allowed]
    unset = ~_CLEANS if field == "cleaning" else ~given(f"dataset.{field}")
    return FieldRule(f"dataset.{field}", f"is for {joined(kinds)}", unset | any_of(*map(given, kinds)))


def _rule_of_baseline(field: str) -> FieldRule:
    return _is_for(f"baselines.{field}", _kinds_with_baseline(field), ~given(f"baselines.{field}"))


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

SPEC_RULES: tuple[FieldRule | RuleGroup, ...] = (
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
    RuleGroup(
        ~_IS_WHOLE,
        (
            _needs("sharding", "training.sharding"),
            FieldRule("training.compile", "cannot be combined with training.sharding", ~value("training.compile")),
        ),
    ),
    FieldRule("training.cpuOffload", "needs training.sharding", ~value("training.cpuOffload") | ~_IS_WHOLE),
    _is_for(
        "training.activationCheckpointing",
        kinds_with("sharding"),
        ~value("training.activationCheckpointing"),
        "the layers of other kinds keep their activations; if these do not fit into memory, lower training.batchSize",
    ),
    RuleGroup(
        given("baselines"),
        (
            *map(_rule_of_baseline, _BASELINES),
            FieldRule(
                "baselines.languageModel",
                "chooses one class for each text, and rows with dataset.labels have several labels: leave it out",
                ~(given("baselines.languageModel") & given("dataset?.labels"))
                | ~_one_of_kinds(_kinds_with_baseline("languageModel")),
            ),
        ),
    ),
    _needs("distillation", "training.distillation", ~given("training.distillation")),
    _needs("tuning", "tuning", ~given("tuning")),
    TUNING_RULES,
    TUNED_BATCH_SIZES_FIT,
    *map(_group_of_kind, KINDS.values()),
    RuleGroup(
        given("dataset"),
        (
            *map(_rule_of_column, _COLUMNS),
            FieldRule(
                "dataset.messages",
                "needs a pretrained model: a tokenizer from scratch has no chat template",
                ~given("dataset.messages") | ~given("model.causalLM?.decoder"),
            ),
            FieldRule(
                "dataset.unlabelled",
                "needs training.distillation, whose teacher labels these rows",
                ~given("dataset.unlabelled") | given("training.distillation"),
            ),
        ),
    ),
    _is_for("code", _USERS_LOOPS, ~given("code")),
    _is_for("requirements", _USERS_LOOPS, ~given("requirements")),
    FieldRule("tracking", "names a tracker twice; each may be there once", _HAS_TRACKERS_OF_DIFFERENT_NAMES),
)
