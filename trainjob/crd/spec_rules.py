"""The rules that span the fields of a whole spec."""

from trainjob.api.baselines import CLASSIFIER_OF
from trainjob.api.cluster import DURATION, UNITS
from trainjob.api.model import Encoder
from trainjob.api.training import CLASSIFIER_METRICS, LANGUAGE_METRICS
from trainjob.api.tuning import BATCH_SIZE, HEADS, HIDDEN_SIZE, TUNABLE, Step, steps_to
from trainjob.crd.rule import IMMUTABLE, IMMUTABLE_FIELDS, Rule, escaped, given, value_of

_IS_FUNCTION = "has(self.model.__function__)"
_IS_TEXT = "has(self.model.textClassifier) && has(self.dataset)"
_IS_IMAGE = "has(self.model.imageClassifier) && has(self.dataset)"
_IS_LANGUAGE = "has(self.model.causalLM) && has(self.dataset)"
_HAS_LAYERS = "(has(self.model.textClassifier) || has(self.model.causalLM))"
_IS_CLASSIFIER = "(has(self.model.textClassifier) || has(self.model.imageClassifier))"
_HAS_ENCODER = "has(self.model.textClassifier) && has(self.model.textClassifier.encoder)"
_TUNED_PARTS = dict.fromkeys(step for path in TUNABLE for step in steps_to(path))


def _same_presence(field: str) -> Rule:
    """A field without a default may be neither added nor removed, which a rule of the field's own model cannot see."""
    return Rule(f"has(self.{field}) == has(oldSelf.{field})", IMMUTABLE, field)


def _is_metric(known: tuple[str, ...]) -> str:
    return f"self.checkpoints.metric in [{', '.join(repr(metric) for metric in known)}]"


def _baseline_of(name: str, model: str) -> Rule:
    fits, message = f"has(self.model.{model})", f"is for model.{model}"
    if not model:
        fits, message = _IS_CLASSIFIER, "is for textClassifier and imageClassifier"
    has_it = f"has(self.baselines) && has(self.baselines.{name})"
    return Rule(f"!({has_it}) || {fits}", message, f"baselines.{name}")


def _candidates(path: str, otherwise: str) -> str:
    """The values that a field may have which takes lists only; the list `otherwise` where it is not tuned."""
    parameter = f"self.tuning.parameters.{escaped(path)}"
    lists = f"has({parameter}.choice) ? {parameter}.choice : has({parameter}.grid) ? {parameter}.grid : []"
    return f"(!{given(path)} ? {otherwise} : {lists})"


def _of_encoder(path: str) -> str:
    parent, _, field = f"self.{path}".rpartition(".")
    return value_of(Encoder, field, parent)


def _tuned_part(step: Step) -> Rule:
    """What is tuned is there."""
    inside = [path for path in TUNABLE if step in steps_to(path)]
    parents = step.path.rpartition(".")[0]
    root, *names = step.path.split(".")
    chain = " && ".join(f"has(self.{'.'.join([root, *names[: depth + 1]])})" for depth in range(len(names)))
    there = f"{chain} || !has(self.{parents})" if step.is_default else chain
    return Rule(
        f"!has(self.tuning) || !([{', '.join(map(given, inside))}].exists(given, given)) || ({there})",
        f"the spec has no {step.path} whose fields could be tuned",
        "tuning.parameters",
    )


def _is_duration(deadline: str) -> str:
    return f"self.deadlines.{deadline}.matches('{DURATION}')"


def _seconds(deadline: str) -> str:
    text = f"self.deadlines.{deadline}"
    units = ", ".join(f"'{unit}': {seconds}" for unit, seconds in UNITS.items())
    return f"int({text}.substring(0, size({text}) - 1)) * {{{units}}}[{text}.substring(size({text}) - 1)]"


SPEC_RULES: tuple[Rule, ...] = (
    *(_same_presence(name) for name, info in IMMUTABLE_FIELDS.items() if info.default is None),
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
        f"!has(self.deadlines.start) || !has(self.deadlines.total) || "
        f"!{_is_duration('start')} || !{_is_duration('total')} || {_seconds('start')} <= {_seconds('total')}",
        "must not be longer than deadlines.total",
        "deadlines.start",
    ),
    Rule(
        "!has(self.training.batchSize) || self.workers.count < 1 || self.training.batchSize % self.workers.count == 0",
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
        f"!({_IS_LANGUAGE}) || !has(self.dataset.train.format) || !(self.dataset.train.format in ['images', 'mnist'])",
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
        f"{_candidates(HIDDEN_SIZE, f'[{_of_encoder(HIDDEN_SIZE)}]')}.all(width, "
        f"{_candidates(HEADS, f'[{_of_encoder(HEADS)}]')}.all(heads, heads < 1 || width % heads == 0))",
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
)
