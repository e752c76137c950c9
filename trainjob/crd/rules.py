"""Rules of the TrainJob type in CEL, as the API server checks them.

Rules that are written as a `FieldRule` are checked in Python and in CEL. The rules of this file are in CEL alone. Some
say the same as a validator in `trainjob.api`, and a test compares both; the others hold in a cluster only.
"""

from trainjob.api.cluster import OWN_PATHS, OWN_VOLUMES, Pods
from trainjob.api.dataset import Dataset, Source, Validation
from trainjob.api.spec_rules import IMMUTABLE
from trainjob.api.storage import Storage
from trainjob.api.training import Distillation
from trainjob.api.trainjob import TrainJobSpec
from trainjob.api.tuning import TUNABLE, Parameter, Tuning
from trainjob.api.wording import nested_model
from trainjob.crd.rule import IMMUTABLE_FIELDS, Rule
from trainjob.crd.spec_rules import CHANGE_RULES, ITEMS, exactly_one
from trainjob.kinds.causal_lm.spec import CausalLM
from trainjob.kinds.image_network import ImageNetwork
from trainjob.kinds.text_network import PooledEncoder, TextNetwork
from trainjob.schema.base import OneOf, StrictModel, fields_of
from trainjob.schema.expressions import escaped
from trainjob.schema.rules import RuledModel

_IMMUTABLE_MODELS = [nested_model(info.annotation) for info in IMMUTABLE_FIELDS.values()]


def rules_of(model: type[StrictModel]) -> tuple[Rule, ...]:
    """The rules of a model of the TrainJob type."""
    if model in ITEMS.values():  # their rules are in crd/spec_rules.py
        return ()
    rules = (
        _rules_of_parameter(model)
        if issubclass(model, Parameter)
        else next((RULES[each] for each in model.__mro__ if each in RULES), ())
    )
    if model in _IMMUTABLE_MODELS:
        rules = (Rule("self == oldSelf", IMMUTABLE), *rules)
    if issubclass(model, RuledModel):
        rules = (*rules, *(Rule(rule.condition.cel, rule.message, rule.field) for rule in model.rules()))
    if issubclass(model, OneOf) and not issubclass(model, Parameter):  # a parameter's schema has maxProperties
        return (_exactly_one(model), *rules)
    return rules


def _exactly_one(model: type[OneOf]) -> Rule:
    return Rule(
        exactly_one(model, "self"), f"set exactly one of {', '.join(map(model.in_yaml, model.choice_fields()))}"
    )


def _rules_of_parameter(model: type[Parameter]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            f"!has(self.{name}) || size(self.{name}) != 2 || self.{name}[0] < self.{name}[1]",
            "the first number must be less than the second",
            name,
        )
        for name in ("uniform", "logUniform", "range")
        if name in fields_of(model)
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


_AT_OWN_PATH = " || ".join(
    f"mount.mountPath == '{path}' || mount.mountPath.startsWith('{path}/')" for path in OWN_PATHS
)
_SEARCHES = " && ".join(f"p.?{escaped(path)}.optMap(x, has(x.grid) == grid).orValue(true)" for path in TUNABLE)


RULES: dict[type[StrictModel], tuple[Rule, ...]] = {
    CausalLM: (_ON_HUB,),
    PooledEncoder: (_ON_HUB,),
    TextNetwork: (_ON_HUB,),
    ImageNetwork: (_ON_HUB,),
    Dataset: (
        Rule("!has(self.labels) || !has(self.label)", "cannot be set together with label", "labels"),
        *(
            Rule(
                f"!has(self.{field}) || !has(self.label) || !(self.label in self.{field})",
                "must not include the label's column: a model that reads the answer learns nothing",
                field,
            )
            for field in ("text", "textPair", "features", "columns")
        ),
        *(
            Rule(
                f"!has(self.{one}) || !has(self.{other}) || "
                f"(self.{one} + self.{other}).size() == self.{one}.size() + self.{other}.size()",
                f"must not name a column that is in {one}",
                other,
            )
            for one, other in (("text", "textPair"), ("text", "textNegative"), ("textPair", "textNegative"))
        ),
        Rule(
            "!has(self.textNegative) || !has(self.label)",
            "cannot be set together with label: it says by itself what is not similar",
            "textNegative",
        ),
        Rule(
            "!has(self.image) || !has(self.label) || self.image != self.label",
            "must not be the same column as label",
            "image",
        ),
        Rule("has(self.prompt) == has(self.completion)", "prompt and completion must be set together", "completion"),
        Rule(
            "!has(self.prompt) || !has(self.completion) || self.prompt != self.completion",
            "must not be the same column as prompt",
            "completion",
        ),
        Rule(
            "!has(self.messages) || !(has(self.text) || has(self.prompt) || has(self.completion))",
            "cannot be set together with text, prompt and completion",
            "messages",
        ),
        Rule(
            "!has(self.text) || !(has(self.prompt) || has(self.completion))",
            "cannot be set together with prompt and completion",
            "text",
        ),
    ),
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
        Rule(
            "!has(self.volumeMounts) || self.volumeMounts.all(mount, has(self.volumes) && "
            "self.volumes.exists(volume, volume.name == mount.name))",
            "every mount must name one of the volumes",
            "volumeMounts",
        ),
        Rule(
            f"!has(self.volumes) || !self.volumes.exists(volume, volume.name in {list(OWN_VOLUMES)})",
            f"{', '.join(OWN_VOLUMES)} are names of volumes that the operator adds: choose others",
            "volumes",
        ),
        Rule(
            f"!has(self.volumeMounts) || !self.volumeMounts.exists(mount, {_AT_OWN_PATH})",
            f"{' and '.join(OWN_PATHS)} are where the operator mounts volumes: choose other paths",
            "volumeMounts",
        ),
    ),
    Tuning: (
        Rule(
            f"[self.parameters].all(p, [self.search == 'grid'].all(grid, {_SEARCHES}))",
            "`grid` is for search: grid, which takes nothing else",
            "parameters",
        ),
    ),
    TrainJobSpec: CHANGE_RULES,
}
"""The rules of each model, except that a choice has exactly one field and that immutable fields stay as they are."""
