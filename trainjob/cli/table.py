"""Tables on the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def show_table(console: "Console", headings: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Prints a table; all columns but the first are aligned to the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number == 0 else "right")
    for line in lines:
        table.add_row(*map(Text, line))
    console.print(table)
