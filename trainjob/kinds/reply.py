"""The answer to one row, in the JSON of `trainjob serve` and as a table in the terminal."""

from abc import ABC, abstractmethod
from typing import ClassVar

from pydantic import BaseModel


class Reply(BaseModel, ABC):
    """A subclass is a target's answer to one row."""

    headings: ClassVar[tuple[str, ...]]
    """Headings of `lines`: the first columns hold names, the others numbers."""
    names: ClassVar[int] = 1
    """The number of columns that hold names."""

    @abstractmethod
    def lines(self, text: str) -> list[tuple[str, ...]]:
        """The cells of each line of the table that `trainjob predict` shows. `text` is that of the row, if the model
        reads texts."""
