"""Numbers as the report writes them."""

import math
from datetime import UTC, datetime

NOTHING = "\N{EN DASH}"


def score(value: object) -> str:
    """A loss, a share or any other measure: four decimals, or four digits where it is very large or small."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return NOTHING
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.4g}"


def percent(share: float) -> str:
    return f"{share:.1%}"


def count(number: float) -> str:
    return f"{number:,.0f}"


def duration(seconds: float) -> str:
    """Seconds in the two units that matter: `0.42 s`, `12.3 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02d} min"


def moment(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def spoken(name: str) -> str:
    return name.replace("_", " ")


def capitalized(name: str) -> str:
    """With a capital at the start and the others as they are."""
    return name[:1].upper() + name[1:]


FILTERS = {
    "spoken": spoken,
    "capitalized": capitalized,
    "score": score,
    "percent": percent,
    "count": count,
    "duration": duration,
    "moment": moment,
}
