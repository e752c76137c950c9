"""The reply of a regressor that predicts several numbers to one row."""

from typing import ClassVar

from pydantic import Field

from trainjob.formatting import plain_number
from trainjob.kinds.reply import Reply


class SeveralNumbersReply(Reply):
    """The model's answer to one row."""

    headings: ClassVar[tuple[str, ...]] = ("label", "prediction")

    prediction: dict[str, float] = Field(description="The predicted numbers by column, each in its column's unit.")

    def lines(self, text: str) -> list[tuple[str, ...]]:
        return [(name, plain_number(number)) for name, number in self.prediction.items()]
