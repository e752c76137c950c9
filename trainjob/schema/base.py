"""Base classes for the types that validate YAML and JSON."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError


class StrictModel(BaseModel):
    """Base of YAML and JSON types: camelCase names, no unknown fields, docstrings as descriptions."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @classmethod
    def in_yaml(cls, name: str) -> str:
        """A field's name in YAML."""
        return cls.model_fields[name].alias or name


def fields_of(spec: type[StrictModel]) -> dict[str, FieldInfo]:
    """The fields of a model by their YAML names."""
    return {info.alias or name: info for name, info in spec.model_fields.items()}


@dataclass(frozen=True)
class DependsOnSpec:
    """Marks a field whose default `trainjob.api.defaults` chooses, so its class has no default to show."""


def depends_on_spec(info: FieldInfo) -> bool:
    """Whether the field's default depends on other fields."""
    return any(isinstance(note, DependsOnSpec) for note in info.metadata)


def refuse_conflicts(conflicts: Iterable[tuple[str, str]]) -> None:
    """Raises a validation error for conflicting fields, given as (path of the field to correct, relative to the
    validated model; message)."""
    found = list(conflicts)
    if found:
        text = "; ".join(f"{path}: {message}" for path, message in found)
        raise PydanticCustomError("conflicts", "{text}", {"text": text, "conflicts": found})


class OneOf(StrictModel):
    """A choice: exactly one of the fields in `choices` is set (by default, of all fields)."""

    choices: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def choice_fields(cls) -> tuple[str, ...]:
        return cls.choices or tuple(cls.model_fields)

    @property
    def chosen(self) -> str:
        """The name of the field that is set."""
        return next(name for name in self.choice_fields() if getattr(self, name) is not None)

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in self.choice_fields() if getattr(self, name) is not None]
        if len(given) != 1:
            allowed = ", ".join(self.in_yaml(name) for name in self.choice_fields())
            found = " and ".join(self.in_yaml(name) for name in given) or "none"
            raise PydanticCustomError(
                "one_of", "set exactly one of {allowed}; found {found}", {"allowed": allowed, "found": found}
            )
        return self


def nested_model(annotation: Any) -> type[StrictModel] | None:
    """The model in a field of this type, if any: Model, Model | None, list[Model]."""
    if isinstance(annotation, type) and issubclass(annotation, StrictModel):
        return annotation
    return next((model for arg in get_args(annotation) if (model := nested_model(arg))), None)
