"""The answer to one row, in the JSON of `trainjob serve` and as a table in the terminal."""

from abc import ABC, abstractmethod
from typing import ClassVar

from pydantic import BaseModel


class Reply(BaseModel, ABC):
    """A subclass is a target's answer to one row."""

    headings: ClassVar[tuple[str, ...]]
    """Headings of `lines`: the first column holds names, the others numbers."""

    @abstractmethod
    def lines(self) -> list[tuple[str, ...]]:
        """The cells of each line of the table that `trainjob predict` shows."""
