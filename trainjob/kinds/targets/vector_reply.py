"""The reply of an embedder to one row."""

from typing import ClassVar

from pydantic import Field

from trainjob.kinds.reply import Reply

SHOWN = 6


class Vector(Reply):
    """The model's answer to one row."""

    headings: ClassVar[tuple[str, ...]] = ("vector",)

    prediction: list[float] = Field(description="The vector of the text, of length 1.")

    def lines(self, text: str) -> list[tuple[str, ...]]:
        shown = ", ".join(f"{number:.4f}" for number in self.prediction[:SHOWN])
        return [(f"{shown}, … ({len(self.prediction)} numbers)",)]
