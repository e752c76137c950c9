"""What all types that YAML and JSON are checked against share."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError


class StrictModel(BaseModel):
    """Base of what YAML and JSON hold: camelCase names, unknown fields refused, docstrings as descriptions."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


@dataclass(frozen=True)
class DependsOnModel:
    """Says that a field's default is chosen by `trainjob.api.defaults`, so that its class has none to show."""


def depends_on_model(info: FieldInfo) -> bool:
    """Whether the field's default is chosen by the model."""
    return any(isinstance(note, DependsOnModel) for note in info.metadata)


def refuse_conflicts(conflicts: Iterable[tuple[str, str]]) -> None:
    """Raises what a validator raises of fields that do not fit together: (path of the field to change, relative to
    the part that is validated; what is wrong)."""
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

    @classmethod
    def in_yaml(cls, name: str) -> str:
        """What a field is called in YAML."""
        return cls.model_fields[name].alias or name

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
