"""Spans of a text, and their JSON in files of predictions."""

import json
from collections.abc import Sequence

Span = tuple[int, int, str]
"""Start and end, exclusive, in characters, and the type."""


def written(spans: Sequence[Span]) -> str:
    """The spans in JSON, the same text for the same spans."""
    return json.dumps([list(span) for span in sorted(spans)], ensure_ascii=False)


def parsed(text: str) -> list[Span]:
    """The spans that `written` wrote."""
    return [(start, end, kind) for start, end, kind in json.loads(text)]
