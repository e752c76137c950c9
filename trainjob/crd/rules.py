"""Rules that span fields, in CEL, as the API server checks them.

Most say the same as a validator in `trainjob.api`, and a test compares both. The others hold in a cluster only.
"""

from dataclasses import dataclass

from trainjob.api.base import OneOf, StrictModel
from trainjob.api.baselines import CLASSIFIER_OF
from trainjob.api.cluster import OWN_PATHS, OWN_VOLUMES, Pods
from trainjob.api.dataset import Dataset, Source, Validation
from trainjob.api.model import CausalLM, Decoder, Encoder, ImageClassifier, TextClassifier
from trainjob.api.training import CLASSIFIER_METRICS, LANGUAGE_METRICS, SGD, Distillation
from trainjob.api.trainjob import Storage, TrainJobSpec
from trainjob.api.tuning import BATCH_SIZE, HEADS, HIDDEN_SIZE, TUNABLE, Parameter, Step, Tuning, steps_to
from trainjob.api.wording import fields_of, nested_model


@dataclass(frozen=True)
class Rule:
    """A condition on `self`, which is a TrainJob's spec or a model inside it."""

    cel: str
    """The expression."""
    message: str
    """What is wrong if it does not hold."""
    field: str = ""
    """Path of the wrong field, relative to `self`; empty for `self`."""

    def validation(self) -> dict[str, str | bool]:
        """The rule as an item of x-kubernetes-validations, evaluated at creation only unless it is about `oldSelf` or a
        field that may change: see docs/decisions/crd-rules-at-creation.md."""
        at = {"fieldPath": "".join(f".{name}" for name in self.field.split("."))} if self.field else {}
        if "oldSelf" in self.cel or any(f"self.{name}." in self.cel for name in _MUTABLE_FIELDS):
            return {"rule": self.cel, "message": self.message, **at}
        return {"rule": f"oldSelf.hasValue() || ({self.cel})", "optionalOldSelf": True, "message": self.message, **at}


def rules_of(model: type[StrictModel]) -> tuple[Rule, ...]:
    """The rules of a model of the TrainJob type."""
    own = _rules_of_parameter(model) if issubclass(model, Parameter) else RULES.get(model, ())
    if model in _IMMUTABLE_MODELS:
        own = (Rule("self == oldSelf", _IMMUTABLE), *own)
    return (_exactly_one(model), *own) if issubclass(model, OneOf) else own


def _exactly_one(model: type[OneOf]) -> Rule:
    choices = [model.in_yaml(name) for name in model.choice_fields()]
    given = ", ".join(f"has(self.{_escaped(name)})" for name in choices)
    return Rule(f"[{given}].exists_one(given, given)", f"set exactly one of {', '.join(choices)}")


_RESERVED = {"break", "const", "continue", "else", "for", "function", "if", "import", "in", "let", "loop", "package"}


def _escaped(field: str) -> str:
    """A field's name in CEL, where reserved words are escaped."""
    return f"__{field}__" if field in _RESERVED else field.replace(".", "__dot__")


def _rules_of_parameter(model: type[Parameter]) -> tuple[Rule, ...]:
    rules = [
        Rule(
            f"!has(self.{name}) || size(self.{name}) != 2 || self.{name}[0] < self.{name}[1]",
            "the first number must be less than the second",
            name,
        )
        for name in ("uniform", "logUniform", "range")
        if name in fields_of(model)
    ]
    if "logUniform" in fields_of(model):
        above = "!has(self.logUniform) || size(self.logUniform) < 1 || self.logUniform[0] > 0.0"
        rules.append(Rule(above, "needs numbers above 0", "logUniform"))
    return tuple(rules)


def _given(path: str, parameters: str = "self.tuning.parameters") -> str:
    return f"has({parameters}.{_escaped(path)})"


def _candidates(path: str, otherwise: str) -> str:
    """The values that a field may have which takes lists only; the list `otherwise` where it is not tuned."""
    parameter = f"self.tuning.parameters.{_escaped(path)}"
    lists = f"has({parameter}.choice) ? {parameter}.choice : has({parameter}.grid) ? {parameter}.grid : []"
    return f"(!{_given(path)} ? {otherwise} : {lists})"


def _tuned_part(step: Step) -> Rule:
    """What is tuned is there."""
    inside = [path for path in TUNABLE if step in steps_to(path)]
    parents = step.path.rpartition(".")[0]
    root, *names = step.path.split(".")
    chain = " && ".join(f"has(self.{'.'.join([root, *names[: depth + 1]])})" for depth in range(len(names)))
    there = f"{chain} || !has(self.{parents})" if step.is_default else chain
    return Rule(
        f"!has(self.tuning) || !([{', '.join(map(_given, inside))}].exists(given, given)) || ({there})",
        f"the spec has no {step.path} whose fields could be tuned",
        "tuning.parameters",
    )


def _absolute(field: str) -> Rule:
    """In a cluster there is no folder that a relative path could start from."""
    return Rule(
        f"!has(self.{field}) || self.{field}.matches('^([A-Za-z][A-Za-z0-9+.-]*://|/)')",
        "must start with a scheme, such as s3://, or be an absolute path: in a cluster there is no folder for a "
        "relative path to start from",
        field,
    )


_ON_HUB = Rule(
    "!has(self.pretrained) || !self.pretrained.matches('^[.]{1,2}/')",
    "must be a name on the Hugging Face hub or an absolute path: in a cluster there is no folder for a "
    "relative path to start from",
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

_MUTABLE_FIELDS = {"suspend", "retries", "deadlines", "ttlAfterFinished", "workers"}
_IMMUTABLE = "cannot be changed once the TrainJob exists"
_IMMUTABLE_FIELDS = {name: info for name, info in fields_of(TrainJobSpec).items() if name not in _MUTABLE_FIELDS}
_IMMUTABLE_MODELS = [nested_model(info.annotation) for info in _IMMUTABLE_FIELDS.values()]


def _same_presence(field: str) -> Rule:
    """A field without a default may be neither added nor removed, which a rule of the field's own model cannot see."""
    return Rule(f"has(self.{field}) == has(oldSelf.{field})", _IMMUTABLE, field)


def _is_metric(known: tuple[str, ...]) -> str:
    return f"self.checkpoints.metric in [{', '.join(repr(metric) for metric in known)}]"


_IS_FUNCTION = "has(self.model.__function__)"
_IS_TEXT = "has(self.model.textClassifier) && has(self.dataset)"
_IS_IMAGE = "has(self.model.imageClassifier) && has(self.dataset)"
_IS_LANGUAGE = "has(self.model.causalLM) && has(self.dataset)"
_HAS_LAYERS = "(has(self.model.textClassifier) || has(self.model.causalLM))"
_IS_CLASSIFIER = "(has(self.model.textClassifier) || has(self.model.imageClassifier))"


def _baseline_of(name: str, model: str) -> Rule:
    fits, message = f"has(self.model.{model})", f"is for model.{model}"
    if not model:
        fits, message = _IS_CLASSIFIER, "is for textClassifier and imageClassifier"
    given = f"has(self.baselines) && has(self.baselines.{name})"
    return Rule(f"!({given}) || {fits}", message, f"baselines.{name}")


_TUNED_PARTS = dict.fromkeys(step for path in TUNABLE for step in steps_to(path))
_SEARCHES = " && ".join(
    f"(!{_given(path, 'self.parameters')} || has(self.parameters.{_escaped(path)}.grid) == (self.search == 'grid'))"
    for path in TUNABLE
)
_ANY_PARAMETER = f"[{', '.join(_given(path, 'self.parameters') for path in TUNABLE)}].exists(given, given)"
_HAS_ENCODER = "has(self.model.textClassifier) && has(self.model.textClassifier.encoder)"


RULES: dict[type[StrictModel], tuple[Rule, ...]] = {
    Decoder: (
        Rule(
            "self.heads < 1 || self.hiddenSize % (2 * self.heads) == 0", "must be a multiple of 2 * heads", "hiddenSize"
        ),
    ),
    CausalLM: (
        Rule(
            "!has(self.lora) || has(self.pretrained)",
            "needs a pretrained decoder: one from scratch must be trained",
            "lora",
        ),
        _ON_HUB,
    ),
    Encoder: (
        Rule("self.heads < 1 || self.hiddenSize % self.heads == 0", "must be a multiple of heads", "hiddenSize"),
    ),
    TextClassifier: (
        Rule(
            "!self.freezeEncoder || !has(self.encoder)",
            "needs a pretrained encoder: one from scratch must be trained",
            "freezeEncoder",
        ),
        _ON_HUB,
    ),
    ImageClassifier: (
        Rule(
            "!self.freezeEncoder || has(self.pretrained)",
            "needs a pretrained network: one from scratch must be trained",
            "freezeEncoder",
        ),
        Rule(
            "!has(self.size) || !has(self.pretrained)",
            "is for mlp and cnn: a pretrained network's image processor says what images become",
            "size",
        ),
        _ON_HUB,
    ),
    SGD: (Rule("!self.nesterov || self.momentum > 0.0", "needs momentum greater than 0", "nesterov"),),
    Dataset: (
        Rule(
            "!has(self.text) || !has(self.label) || !(self.label in self.text)",
            "must not hold the label's column: a model that reads the answer learns nothing",
            "text",
        ),
        Rule("has(self.prompt) == has(self.completion)", "prompt and completion need each other", "completion"),
        Rule(
            "!has(self.prompt) || !has(self.completion) || self.prompt != self.completion",
            "must be another column than the prompt's",
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
    Source: (_absolute("uri"),),
    Distillation: (_absolute("teacher"),),
    Validation: (_absolute("uri"),),
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
            "every mount must be of one of the volumes",
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
        Rule(_ANY_PARAMETER, "must not be empty", "parameters"),
        Rule(_SEARCHES, "`grid` is for search: grid, which takes nothing else", "parameters"),
    ),
    TrainJobSpec: (
        *(_same_presence(name) for name, info in _IMMUTABLE_FIELDS.items() if info.default is None),
        Rule(
            "!has(self.workers.perPod) || self.workers.perPod < 1 || self.workers.count % self.workers.perPod == 0",
            "must divide workers.count",
            "workers.perPod",
        ),
        Rule(
            "!has(self.workers.minimum) || self.workers.minimum <= self.workers.count",
            "must not be more than workers.count",
            "workers.minimum",
        ),
        Rule(
            "!has(self.workers.minimum) || !has(self.tuning)",
            "cannot be set together with tuning, whose trials wait for workers one by one",
            "workers.minimum",
        ),
        Rule(
            "!has(self.training.batchSize) || self.workers.count < 1 || "
            "self.training.batchSize % self.workers.count == 0",
            "must be a multiple of workers.count",
            "training.batchSize",
        ),
        Rule(
            f"!{_IS_FUNCTION} || !has(self.dataset) || self.dataset.loader != 'dataLoader'",
            "a function gets its rows from Ray Data",
            "dataset.loader",
        ),
        Rule(f"{_IS_FUNCTION} || has(self.dataset)", "is required by every model but a function", "dataset"),
        Rule(
            f"!({_IS_TEXT}) || has(self.dataset.text)",
            "is required by model.textClassifier: the columns that hold the text",
            "dataset.text",
        ),
        Rule(
            f"!({_IS_TEXT}) || has(self.dataset.label)",
            "is required by model.textClassifier: the column that holds the label",
            "dataset.label",
        ),
        Rule(
            f"!({_IS_TEXT}) || !has(self.dataset.train.format) || !(self.dataset.train.format in ['images', 'mnist'])",
            "must be csv, jsonl or parquet for model.textClassifier",
            "dataset.train.format",
        ),
        Rule(
            f"!({_IS_LANGUAGE}) || has(self.dataset.text) || has(self.dataset.prompt) || "
            "has(self.dataset.completion) || has(self.dataset.messages)",
            "is required by model.causalLM, or prompt and completion, or messages",
            "dataset.text",
        ),
        *(
            Rule(
                f"has(self.model.causalLM) || !has(self.dataset) || !has(self.dataset.{name})",
                "is for model.causalLM",
                f"dataset.{name}",
            )
            for name in ("prompt", "completion", "messages")
        ),
        Rule(
            f"!({_IS_LANGUAGE}) || !has(self.model.causalLM.decoder) || !has(self.dataset.messages)",
            "needs a pretrained model: a tokenizer from scratch has no chat template",
            "dataset.messages",
        ),
        Rule(f"!({_IS_LANGUAGE}) || !has(self.dataset.label)", "is for classifiers", "dataset.label"),
        Rule(
            f"!({_IS_LANGUAGE}) || !has(self.dataset.train.format) || "
            "!(self.dataset.train.format in ['images', 'mnist'])",
            "must be csv, jsonl or parquet for model.causalLM",
            "dataset.train.format",
        ),
        Rule(
            f"!({_IS_LANGUAGE}) || !(self.dataset.cleaning.lowercase || self.dataset.cleaning.removeURLs || "
            "self.dataset.cleaning.removeHTML)",
            "is for model.textClassifier: a language model learns texts as they are",
            "dataset.cleaning",
        ),
        Rule(
            f"!({_IS_IMAGE}) || !has(self.dataset.text)",
            "is for model.textClassifier and model.causalLM",
            "dataset.text",
        ),
        Rule(
            "!has(self.dataset) || !has(self.dataset.unlabelled) || has(self.training.distillation)",
            "needs training.distillation, whose teacher labels these rows",
            "dataset.unlabelled",
        ),
        Rule(
            f"{_IS_CLASSIFIER} || !has(self.training.distillation)",
            "is for textClassifier and imageClassifier",
            "training.distillation",
        ),
        Rule(
            "self.training.sharding != 'full' || self.workers.count != 1",
            "needs at least 2 workers (workers.count) to share the model",
            "training.sharding",
        ),
        Rule(
            f"self.training.sharding == 'none' || {_HAS_LAYERS}",
            "is for textClassifier and causalLM",
            "training.sharding",
        ),
        Rule(
            "self.training.sharding == 'none' || !self.training.compile",
            "does not go together with training.sharding",
            "training.compile",
        ),
        Rule(
            "!self.training.cpuOffload || self.training.sharding != 'none'",
            "needs training.sharding",
            "training.cpuOffload",
        ),
        Rule(
            f"!self.training.activationCheckpointing || {_HAS_LAYERS}",
            "is for textClassifier and causalLM",
            "training.activationCheckpointing",
        ),
        Rule(f"!has(self.tuning) || {_IS_CLASSIFIER}", "is for textClassifier and imageClassifier", "tuning"),
        *map(_tuned_part, _TUNED_PARTS),
        Rule(
            f"!has(self.tuning) || self.workers.count < 1 || "
            f"{_candidates(BATCH_SIZE, '[]')}.all(size, size % self.workers.count == 0)",
            f"{BATCH_SIZE} must be a multiple of workers.count",
            "tuning.parameters",
        ),
        Rule(
            f"!has(self.tuning) || !({_HAS_ENCODER}) || "
            f"{_candidates(HIDDEN_SIZE, f'[self.{HIDDEN_SIZE}]')}.all(width, "
            f"{_candidates(HEADS, f'[self.{HEADS}]')}.all(heads, heads < 1 || width % heads == 0))",
            f"{HIDDEN_SIZE} must be a multiple of every heads",
            "tuning.parameters",
        ),
        *(_baseline_of(name, model) for name, model in CLASSIFIER_OF.items()),
        Rule(
            f"!{_IS_CLASSIFIER} || {_is_metric(CLASSIFIER_METRICS)}",
            f"must be one of {', '.join(CLASSIFIER_METRICS)} for a classifier",
            "checkpoints.metric",
        ),
        Rule(
            f"!has(self.model.causalLM) || {_is_metric(LANGUAGE_METRICS)}",
            f"must be one of {', '.join(LANGUAGE_METRICS)} for model.causalLM",
            "checkpoints.metric",
        ),
    ),
}
"""The rules of each model, except that a choice has exactly one field and that immutable fields stay as they are."""
