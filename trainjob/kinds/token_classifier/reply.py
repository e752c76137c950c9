"""The reply of a token classifier to one text."""

from typing import ClassVar

from pydantic import BaseModel, Field

from trainjob.formatting import cut
from trainjob.kinds.reply import Reply

MAX_SPAN_CHARACTERS = 60
"""Characters shown of a span."""


class FoundSpan(BaseModel):
    """A span of the text."""

    start: int = Field(description="The first character.")
    end: int = Field(description="The character after the last one.")
    type: str = Field(description="The type.")
    probability: float = Field(description="The mean probability of its tokens' tags.")


class Spans(Reply):
    """The spans that the model finds in one text."""

    headings: ClassVar[tuple[str, ...]] = ("span", "type", "start", "end", "probability")
    names: ClassVar[int] = 2

    spans: list[FoundSpan] = Field(description="In the order of the text.")

    def lines(self, text: str) -> list[tuple[str, ...]]:
        return [
            (
                cut(" ".join(text[each.start : each.end].split()), MAX_SPAN_CHARACTERS),
                each.type,
                str(each.start),
                str(each.end),
                f"{each.probability:.4f}",
            )
            for each in self.spans
        ]
