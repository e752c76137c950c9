"""Tables on the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainjob.cli.output import MAX_WIDTH, say

if TYPE_CHECKING:
    from rich.console import Console


def show_table(console: "Console", headings: Sequence[str], lines: Sequence[Sequence[str]], title: str = "") -> None:
    """Prints a table; all columns but the first are aligned to the right. Where the terminal is too narrow for it,
    prints a paragraph for each line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(Text(heading), justify="left" if number == 0 else "right")
    for line in lines:
        table.add_row(*map(Text, line))
    if console.measure(table, options=console.options.update_width(MAX_WIDTH)).maximum <= console.width:
        console.print(table)
        return
    if title:
        say(title)
    width = max(map(len, headings[1:]))
    for name, *cells in lines:
        say(name)
        for heading, cell in zip(headings[1:], cells, strict=True):
            say(f"  {heading:<{width}}  {cell}")
