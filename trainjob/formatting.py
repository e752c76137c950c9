"""Numbers, times and names as reports and the command line show them."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from trainjob.api.numbers import to_json

MISSING = "\N{EN DASH}"
"""Shown instead of a missing number."""
_AS_WRITTEN = {
    **{name: name.upper() for name in ("f1", "mae", "mrr", "rmse")},
    **{name: name.capitalize() for name in ("pearson", "spearman")},
    "r2": "R²",
}
"""Words of metrics' names that are spelled differently in texts."""


def score(value: object) -> str:
    """A loss or another metric with up to four decimals, see `rounded`; an integer as it is."""
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return MISSING
    if not math.isfinite(value):
        return str(to_json(value))
    return rounded([value])[0]


def rounded(values: Sequence[float], sign: str = "") -> list[str]:
    """Finite numbers of about one size with equally many decimals: four below 10, two below 100, and one below 1,000.
    Where the largest is smaller than 0.001 or not below 1,000, each has at least four significant digits instead. With
    `sign` "+", numbers above 0 have a sign, too."""
    largest = max(map(abs, values))
    if 1e-3 <= largest < 1e3 or largest == 0:
        decimals = 4 if largest < 10 else 2 if largest < 100 else 1
        return [f"{value:{sign}z.{decimals}f}" for value in values]
    return [plain_number(value, 4, sign) for value in values]


def plain_number(value: float, digits: int = 6, sign: str = "") -> str:
    """A number with so many significant digits, and all those before the point up to 10^15; with `sign` "+", also of
    numbers above 0."""
    if abs(value) < 1e15:
        digits = max(digits, len(f"{abs(value):.0f}"))
    return f"{value:{sign},.{digits}g}"


def percent(share: float) -> str:
    return f"{share:.1%}"


def done(percent: float) -> str:
    """The percentage of a job that is done, as a whole number: 100 only at the end."""
    return f"{int(percent)}"


def count(number: float) -> str:
    return f"{number:,.0f}"


def duration(seconds: float) -> str:
    """Seconds in at most two units: `0.42 s`, `12.3 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02d} min"


def timestamp(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def readable(name: str) -> str:
    """`validation_r2` → `validation R²`, `recall_at_10` → `recall@10`."""
    words = " ".join(_AS_WRITTEN.get(word, word) for word in name.split("_"))
    return re.sub(r" at (\d)", r"@\1", words)


def title(name: str) -> str:
    """The name of a metric as a heading: `validation_r2` → `Validation R²`."""
    return capitalized(readable(name))


def cut(text: str, characters: int) -> str:
    """The first characters of a text, then `…` if there are more."""
    return text if len(text) <= characters else f"{text[:characters]}…"


def shortened(name: str, longest: int = 30) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def capitalized(name: str) -> str:
    """The first letter as a capital, the others unchanged."""
    return name[:1].upper() + name[1:]


def bytes_(size: float) -> str:
    """`512 B`, `3.4 MiB`, `80.0 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1000 or unit == "GiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
