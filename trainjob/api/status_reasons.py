"""The meaning of each reason of a TrainJob's status, and the remedy, for docs/status.md and the command line: the table
in status_reasons.yaml."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml


class Explanation(NamedTuple):
    """A row of the table in docs/status.md, in Markdown."""

    reasons: str
    """Comma-separated."""
    phases: str
    """The phases in which the reasons occur."""
    meaning: str
    remedy: str
    """The user's next action."""


_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@cache
def explanations() -> list[Explanation]:
    """All explanations, in the order of the table."""
    rows = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return [Explanation(**row) for row in rows]


@cache
def explanation(reason: str) -> Explanation | None:
    """The explanation of a reason, without Markdown."""
    for found in explanations():
        if reason in found.reasons.split(", "):
            return Explanation(*(_LINK.sub(r"\1", text).replace("`", "") for text in found))
    return None


def table() -> str:
    """The table of docs/status.md."""
    head = "| reason | with phase | means | do |\n|---|---|---|---|\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in explanations())
