"""The reply of a regressor to one row."""

from typing import ClassVar

from pydantic import Field

from trainjob.formatting import plain_number
from trainjob.kinds.reply import Reply


class Number(Reply):
    """The model's answer to one row."""

    headings: ClassVar[tuple[str, ...]] = ("prediction",)

    prediction: float = Field(description="The predicted number, in the unit of the labels.")

    def lines(self, text: str) -> list[tuple[str, ...]]:
        return [(plain_number(self.prediction),)]
