"""`spec.tuning`: the search space and the search algorithm."""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union, cast, get_args, get_origin

from annotated_types import Ge, Gt
from pydantic import ConfigDict, Field, create_model, model_validator
from pydantic.alias_generators import to_snake
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from trainjob.api.training import Training
from trainjob.kinds import KINDS, kinds_with
from trainjob.kinds.model import Model
from trainjob.schema.base import OneOf, StrictModel, depends_on_spec, fields_of, nested_model
from trainjob.schema.expressions import Expression, escaped, given, value
from trainjob.schema.fields import UniqueList
from trainjob.schema.rules import FieldRule, RuledModel

Value = int | float | bool | str
"""The value of a hyperparameter."""

TRIALS = 10
MAX_TRIALS = 1000
_NOT_TUNED = {f"model.{kind.field}.{name}" for kind in KINDS.values() for name in kind.not_tuned} | {
    "training.seed",  # rows are read, split and tokenized once for all trials
    "training.validateEverySteps",  # trials would be measured at different moments
    "training.compile",  # changes nothing that is measured, nor do the next three
    "training.sharding",
    "training.cpuOffload",
    "training.activationCheckpointing",
    "training.optimizer.sgd.nesterov",  # needs a momentum
}
BATCH_SIZE = "training.batchSize"
HIDDEN_SIZE, HEADS = "model.textClassifier.encoder.hiddenSize", "model.textClassifier.encoder.heads"
DIVIDES = {BATCH_SIZE, HIDDEN_SIZE, HEADS}
"""Fields with divisibility constraints. They take lists of values, which can be checked one by one."""
GENERATED = ConfigDict(use_attribute_docstrings=False)
"""For types created at runtime: pydantic would search all loaded modules for their source, which takes seconds."""
DISTRIBUTIONS = {
    "uniform": "Uniform between the two bounds.",
    "log_uniform": "Log-uniform between the two bounds.",
    "range": "Integers between the two bounds, both included.",
    "choice": "One of these.",
    "grid": "Every one of these; only for `search: grid`.",
}
"""Descriptions of the fields of a parameter. They are only on the reference page: the CRD would repeat them for every
parameter."""

PAIRS = ("uniform", "logUniform", "range")
NOT_ASCENDING = "the first number must be less than the second"


class Parameter(RuledModel, OneOf):
    """The distribution of a hyperparameter: exactly one of these."""

    model_config = ConfigDict(
        use_attribute_docstrings=False, json_schema_extra={"minProperties": 1, "maxProperties": 1}
    )

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        pairs = (name for name in PAIRS if name in fields_of(cls))
        return tuple(FieldRule(name, NOT_ASCENDING, ~given(name) | value(name).is_ascending_pair()) for name in pairs)


@dataclass(frozen=True)
class OptionalPart:
    """A choice or an optional field in the path of a parameter."""

    path: str
    """Path of the field that must be set, such as training.optimizer.sgd."""
    is_default: bool
    """Whether the parent's default selects it."""


def _item(annotation: Any, metadata: list[Any]) -> Any:
    """The type of one value, with its field's bounds."""
    kept = [note for note in metadata if type(note).__module__ == "annotated_types"]
    return Annotated[(annotation, *kept)] if kept else annotation


def _plain(info: FieldInfo) -> tuple[Any, list[Any]]:
    """A field's type without None, and its bounds."""
    annotation, metadata = info.annotation, list(info.metadata)
    if get_origin(annotation) in (Union, types.UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not type(None))
    while get_origin(annotation) is Annotated:
        annotation, *notes = get_args(annotation)
        metadata += [each for note in notes for each in (note.metadata if isinstance(note, FieldInfo) else [note])]
    return annotation, metadata


def _leaves(part: type[StrictModel], path: str) -> Iterator[tuple[str, Any, str]]:
    """Path, value type and description of every number, flag and enumeration inside `part`."""
    for name, info in fields_of(part).items():
        field_path, nested = f"{path}.{name}", nested_model(info.annotation)
        annotation, metadata = _plain(info)
        if nested is not None:
            if get_origin(annotation) not in (list, dict):
                yield from _leaves(nested, field_path)
        elif (annotation in (int, float, bool) or get_origin(annotation) is Literal) and field_path not in _NOT_TUNED:
            yield field_path, _item(annotation, metadata), info.description or ""


def _is_above_0(bound: Any) -> bool:
    return (isinstance(bound, Gt) and cast("float", bound.gt) >= 0) or (
        isinstance(bound, Ge) and cast("float", bound.ge) > 0
    )


def _parameter(path: str, item: Any) -> type[Parameter]:
    kind, *bounds = get_args(item) if get_origin(item) is Annotated else (item,)
    several: Any = Annotated[UniqueList[item], Field(max_length=100)]
    pair: Any = Annotated[list[item], Field(min_length=2, max_length=2)]
    fields: dict[str, Any] = {}
    if kind is float:
        above_0 = item if any(_is_above_0(bound) for bound in bounds) else Annotated[item, Field(gt=0)]
        fields["uniform"] = pair
        fields["log_uniform"] = Annotated[list[above_0], Field(min_length=2, max_length=2)]
    if kind is int and path not in DIVIDES:
        fields["range"] = pair
    fields["choice"] = fields["grid"] = several
    name = "".join(word[:1].upper() + word[1:] for word in path.split("."))
    definitions: Any = {field: (annotation | None, None) for field, annotation in fields.items()}
    return create_model(name, __base__=Parameter, __doc__=Parameter.__doc__, **definitions)


TUNABLE = {
    path: (item, text)
    for root, part in (("model", Model), ("training", Training))
    for path, item, text in _leaves(part, root)
    if root == "training" or path.split(".")[1] in kinds_with("tuning")
}
"""The value type and description of each tunable hyperparameter, by its path in the spec."""

if TYPE_CHECKING:

    class Parameters(StrictModel):
        """The distribution of each hyperparameter, by the path of its field in the spec."""
else:

    class _Generated(StrictModel):
        model_config = ConfigDict(**GENERATED, json_schema_extra={"minProperties": 1})

        @model_validator(mode="after")
        def _at_least_one(self) -> Self:
            if not self.model_fields_set:
                raise PydanticCustomError("empty", "must not be empty")
            return self

    Parameters = create_model(
        "Parameters",
        __base__=_Generated,
        __doc__="The distribution of each hyperparameter, by the path of its field in the spec.",
        **{
            to_snake(path.replace(".", "_")): (
                _parameter(path, item) | None,
                Field(default=None, alias=path, description=text),
            )
            for path, (item, text) in TUNABLE.items()
        },
    )


class Tuning(RuledModel):
    """Trains several models with different hyperparameters and keeps the best."""

    parameters: Parameters
    """The distribution of each hyperparameter, by the path of its field in the spec."""
    trials: Annotated[int, Field(ge=1, le=MAX_TRIALS)] | None = None
    """Number of trials; by default 10, or all combinations of a grid (a smaller number takes the first ones)."""
    parallel: Annotated[int, Field(ge=1, le=100)] = 1
    """Trials that run at once, each with workers.count workers."""
    search: Literal["random", "tpe", "grid"] = "random"
    """random draws each trial independently; tpe (Optuna's) learns from earlier trials; grid tries every
    combination."""
    scheduler: Literal["none", "asha"] = "none"
    """asha stops a trial early if it is worse than most others at the same epoch."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    """Seed of the search."""

    @property
    def tuned(self) -> dict[str, Parameter]:
        """The tuned parameters, by path."""
        found = {path: getattr(self.parameters, name) for name, path in _names().items()}
        return {path: cast("Parameter", parameter) for path, parameter in found.items() if parameter is not None}

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        message = "must use `grid` with search: grid, and another distribution with any other search"
        return (FieldRule("parameters", message, _DISTRIBUTIONS_SUIT_SEARCH, _unsuitable),)


def _unsuitable(tuning: Tuning) -> str:
    """The parameters whose distribution the search does not take."""
    is_grid = tuning.search == "grid"
    return ", ".join(path for path, parameter in tuning.tuned.items() if (parameter.chosen == "grid") != is_grid)


_SUITS_SEARCH = " && ".join(f"p.?{escaped(path)}.optMap(x, has(x.grid) == grid).orValue(true)" for path in TUNABLE)
_DISTRIBUTIONS_SUIT_SEARCH = Expression(
    f"[self.parameters].all(p, [self.search == 'grid'].all(grid, {_SUITS_SEARCH}))",
    lambda tuning: not _unsuitable(tuning),
)


@cache
def _names() -> dict[str, str]:
    return {name: info.alias or name for name, info in Parameters.model_fields.items()}


def values_of(parameter: Parameter) -> list[Any]:
    """The values of the chosen distribution."""
    return getattr(parameter, parameter.chosen)


def optional_parts(path: str) -> list[OptionalPart]:
    """The optional parts of the spec around a field, outermost first: they must be set so that it can be tuned."""
    parts: list[OptionalPart] = []
    root, *names = path.split(".")
    part: type[StrictModel] = Model if root == "model" else Training
    field_path = root
    default: Any = None
    for name in names[:-1]:
        info = fields_of(part)[name]
        field_path = f"{field_path}.{name}"
        if info.default is None:
            parts.append(
                OptionalPart(field_path, isinstance(default, OneOf) and fields_of(part)[name] is _chosen(default))
            )
        default = None if depends_on_spec(info) else info.default
        part = cast("type[StrictModel]", nested_model(info.annotation))
    return parts


def _chosen(choice: OneOf) -> FieldInfo:
    return type(choice).model_fields[choice.chosen]


def candidates(tuning: Tuning, path: str, otherwise: Any) -> list[Any]:
    """The candidate values of one of DIVIDES; [`otherwise`] if it is not tuned."""
    parameter = tuning.tuned.get(path)
    return [otherwise] if parameter is None else values_of(parameter)


def set_in(document: dict[str, Any], path: str, value: Value) -> None:
    """Sets a field of a spec's YAML document."""
    *parents, name = path.split(".")
    for parent in parents:
        document = document[parent]
    document[name] = value


def number_of_trials(tuning: Tuning) -> int:
    """The number of trials of a search."""
    if tuning.search != "grid":
        return tuning.trials or TRIALS
    combinations = prod(len(values_of(parameter)) for parameter in tuning.tuned.values())
    return min(combinations, tuning.trials or MAX_TRIALS)
