"""Rules of the TrainJob type in CEL, as the API server checks them.

Rules that are written as a `FieldRule` are checked in Python and in CEL. The rules of this file hold in a cluster only.
"""

from trainjob.api.cluster import Pods
from trainjob.api.dataset import Source, Validation
from trainjob.api.spec_rules import IMMUTABLE
from trainjob.api.storage import Storage
from trainjob.api.training import Distillation
from trainjob.api.trainjob import TrainJobSpec
from trainjob.api.tuning import NOT_ASCENDING, PAIRS, Parameter
from trainjob.crd.rule import IMMUTABLE_FIELDS, MergedRule, Rule
from trainjob.crd.spec_rules import CHANGE_RULES, ITEMS, exactly_one, grouped
from trainjob.kinds.causal_lm.spec import CausalLM
from trainjob.kinds.image_network import ImageNetwork
from trainjob.kinds.text_network import PooledEncoder, TextNetwork
from trainjob.schema.base import OneOf, StrictModel, nested_model
from trainjob.schema.expressions import Expression
from trainjob.schema.rules import FieldRule, RuledModel, RuleGroup

_IMMUTABLE_MODELS = [nested_model(info.annotation) for info in IMMUTABLE_FIELDS.values()]


def rules_of(model: type[StrictModel]) -> tuple[Rule | MergedRule, ...]:
    """The rules of a model of the TrainJob type."""
    if model in ITEMS.values() or issubclass(model, Parameter):  # see crd/spec_rules.py and `rules_of_value`
        return ()
    rules = next((RULES[each] for each in model.__mro__ if each in RULES), ())
    if model in _IMMUTABLE_MODELS:
        rules = (Rule("self == oldSelf", IMMUTABLE), *rules)
    if issubclass(model, RuledModel):
        rules = (*rules, *map(_in_cel, model.rules()))
    if issubclass(model, OneOf):
        return (_exactly_one(model), *rules)
    return rules


def rules_of_value(model: type[StrictModel], field: str) -> tuple[Rule, ...]:
    """The rules of a field's value, at the value. Most hyperparameters have two pairs, and a rule of their model takes
    twice as many bytes. That a parameter has exactly one distribution is in its schema (`maxProperties`)."""
    if issubclass(model, Parameter) and field in PAIRS:
        return (Rule(Expression("self", lambda pair: pair).is_ascending_pair().cel, NOT_ASCENDING),)
    return ()


def _in_cel(rule: FieldRule | RuleGroup) -> Rule | MergedRule:
    return grouped(rule) if isinstance(rule, RuleGroup) else Rule(rule.condition.cel, rule.message, rule.field)


def _exactly_one(model: type[OneOf]) -> Rule:
    return Rule(
        exactly_one(model, "self"), f"set exactly one of {', '.join(map(model.in_yaml, model.choice_fields()))}"
    )


_NOT_ABSOLUTE = (
    "must start with a scheme, such as s3://, or be an absolute path: a relative path has no meaning in a cluster"
)


def _is_absolute(uri: str) -> str:
    """CEL for whether a path is absolute or an address. The regular expression is short, because its cost counts for
    each item of a list."""
    return f"{uri}.matches('^([a-z0-9]+:/)?/')"


def _absolute(field: str) -> Rule:
    return Rule(f"!has(self.{field}) || {_is_absolute(f'self.{field}')}", _NOT_ABSOLUTE, field)


_ALL_ABSOLUTE = Rule(f"!has(self.uris) || self.uris.all(uri, {_is_absolute('uri')})", _NOT_ABSOLUTE, "uris")


_ON_HUB = Rule(
    "!has(self.pretrained) || !self.pretrained.matches('^[.]{1,2}/')",
    "must be a name on the Hugging Face hub or an absolute path: a relative path has no meaning in a cluster",
    "pretrained",
)
_LABEL = "([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
_PREFIX = r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)"


def _label_keys(field: str) -> Rule:
    return Rule(
        f"!has(self.{field}) || self.{field}.all(key, key.matches('^{_PREFIX}?{_LABEL}$'))",
        "every key must be a name, such as team or example.com/team",
        field,
    )


def _label_values(field: str) -> Rule:
    return Rule(
        f"!has(self.{field}) || self.{field}.all(key, self.{field}[key].matches('^{_LABEL}?$'))",
        "every value must be letters, digits, '-', '_' and '.', with a letter or digit at both ends",
        field,
    )


RULES: dict[type[StrictModel], tuple[Rule | MergedRule, ...]] = {
    CausalLM: (_ON_HUB,),
    PooledEncoder: (_ON_HUB,),
    TextNetwork: (_ON_HUB,),
    ImageNetwork: (_ON_HUB,),
    Source: (_absolute("uri"), _ALL_ABSOLUTE),
    Distillation: (_absolute("teacher"),),
    Validation: (_absolute("uri"), _ALL_ABSOLUTE),
    Storage: (_absolute("uri"),),
    Pods: (
        _label_keys("labels"),
        _label_values("labels"),
        _label_keys("annotations"),
        _label_keys("nodeSelector"),
        _label_values("nodeSelector"),
    ),
    TrainJobSpec: CHANGE_RULES,
}
"""The rules of each model, except that a choice has exactly one field and that immutable fields stay as they are."""
