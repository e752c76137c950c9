"""Names of classes, labels and categories that look alike to people."""

import unicodedata
from collections import defaultdict

from trainjob.formatting import cut

_SHOWN = 3
_MAX_CHARACTERS = 60


def look_alike_notes(noun: str, rows: dict[str, int]) -> list[str]:
    """A sentence on names that look alike, if there are any. `noun` is the plural of the things they name; `rows` are
    the training rows of each."""
    groups = [names for names in _alike(rows) if len(names) > 1]
    if not groups:
        return []
    more = f" and {len(groups) - _SHOWN:,} more such groups" if len(groups) > _SHOWN else ""
    pairs = "; ".join(names_with_rows(names, rows, " beside ") for names in groups[:_SHOWN])
    return [f"{noun} that differ only in case, blanks or invisible characters are different {noun}: {pairs}{more}"]


def _alike(rows: dict[str, int]) -> list[list[str]]:
    """Groups the names by their spelling without case and blanks."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in rows:
        groups[visible(name)].append(name)
    return list(groups.values())


def visible(name: str) -> str:
    """The name without case, blanks and invisible characters: the same for names that look alike."""
    return "".join(sign for sign in unicodedata.normalize("NFKC", name).casefold() if not _is_hidden(sign))


def _is_hidden(sign: str) -> bool:
    """Whether a character is blank or, as a NUL or a zero-width space, not seen at all."""
    return sign.isspace() or unicodedata.category(sign) in ("Cc", "Cf")


def names_with_rows(names: list[str], rows: dict[str, int], between: str = ", ") -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return between.join(f"{_quoted(name)} ({_count(rows[name])})" for name in names[:_SHOWN]) + more


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def _quoted(name: str) -> str:
    """A name in the quotes that it does not hold, cut where it is long."""
    name = "".join(
        sign if sign == " " or not _is_hidden(sign) else sign.encode("unicode_escape").decode()
        for sign in cut(name, _MAX_CHARACTERS)
    )
    return f"'{name}'" if '"' in name else f'"{name}"'
