"""Filters of the templates."""

import re

from markupsafe import Markup, escape

from trainjob.formatting import (
    capitalized,
    count,
    duration,
    percent,
    plain_number,
    readable,
    score,
    shortened,
    timestamp,
)


def interval_apart(text: str) -> Markup:
    """HTML of `0.81 [0.79, 0.83]` with the interval in an element of its own, of other text as it is."""
    value, bracket, rest = text.partition(" [")
    return Markup('{} <span class="interval">[{}</span>').format(value, rest) if bracket else Markup(escape(text))


def breakable(name: str) -> Markup:
    """HTML of a name, whose lines may end at its underscores."""
    return Markup(str(escape(name)).replace("_", "_<wbr>"))


def with_code(text: str) -> Markup:
    """HTML of a sentence whose commands and fields are between backticks."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def cell(text: object) -> str:
    """Text that stays in its cell of a Markdown table and is shown as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!])", r"\\\1", " ".join(str(text).split()))


FILTERS = {
    "cell": cell,
    "interval_apart": interval_apart,
    "with_code": with_code,
    "breakable": breakable,
    "readable": readable,
    "capitalized": capitalized,
    "shortened": shortened,
    "score": score,
    "plain_number": plain_number,
    "percent": percent,
    "count": count,
    "duration": duration,
    "timestamp": timestamp,
}
