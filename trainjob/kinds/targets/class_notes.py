"""The sizes of classes, and oddities in their names: lists, missing values, several labels in one."""

import ast
import json
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from trainjob.api.data_profile import FEW_ROWS, ClassSizes
from trainjob.kinds.look_alikes import look_alike_notes, names_with_rows

_MISSING = ("nan", "none", "null", "n/a", "na", "<na>", "nat", "\\n")
_EXCEL_ERRORS = ("#n/a", "#ref!", "#value!", "#name?", "#div/0!", "#num!", "#null!")
_NO_LABEL = "-1"
"""The label that data sets of the Hugging Face hub with numbered classes give to rows without one."""
_AS_LISTS = ": if rows of texts or images have several labels, write lists such as a|b"
_SEPARATORS = "|;#,"


def class_sizes(classes: list[str], counts: list[int]) -> ClassSizes:
    """The class sizes of the training rows, from `counts` by class."""
    smallest, largest = int(np.argmin(counts)), int(np.argmax(counts))
    return ClassSizes(
        classes=len(classes),
        rare=int(np.sum(np.array(counts) < FEW_ROWS)),
        smallest=classes[smallest],
        smallest_rows=counts[smallest],
        median_rows=float(np.median(counts)),
        largest=classes[largest],
        largest_rows=counts[largest],
    )


def label_notes(classes: Sequence[str], counts: Sequence[int], may_be_lists: bool = True) -> list[str]:
    """A sentence for each kind of odd names, with examples; `counts` are the training rows of each class.
    `may_be_lists` says whether the model can learn several labels a row."""
    return list(_notes(dict(zip(classes, counts, strict=True)), may_be_lists))


def _notes(rows: dict[str, int], may_be_lists: bool) -> Iterator[str]:
    if lists := [name for name in rows if _is_list(name)]:
        yield (
            f"{len(lists):,} of {len(rows):,} classes look like lists or JSON: {names_with_rows(lists, rows)}. Each "
            "one is treated as a separate class: give each row one plain label"
        )
    yield from look_alike_notes("classes", rows)
    if combined := _combined(rows):
        yield (
            f"{len(combined):,} of {len(rows):,} classes look like several labels in one: "
            f"{names_with_rows(combined, rows)}. Each is a class of its own{_AS_LISTS if may_be_lists else ''}"
        )
    if missing := [name for name in rows if _is_missing(name, rows)]:
        yield f"a class is called {names_with_rows(missing, rows)}: if it stands for a missing label, drop its rows"


def _is_list(name: str) -> bool:
    """Whether a name is a list, an object or a tuple in JSON or Python."""
    if not (name.startswith(("[", "{", "(")) and name.endswith(("]", "}", ")"))):
        return False
    for parse in (json.loads, ast.literal_eval):
        try:
            return isinstance(parse(name), (list, dict, tuple, set))
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return False


def _combined(rows: dict[str, int]) -> list[str]:
    """The names that consist of parts of other names, at least one of which is a name itself."""
    combined: list[str] = []
    for separator in _SEPARATORS:
        parts = {name: {part.strip() for part in name.split(separator)} for name in rows}
        count = Counter(part for each in parts.values() for part in each)
        combined += [
            name
            for name, each in parts.items()
            if len(each) > 1 and all(part and count[part] > 1 for part in each) and any(part in rows for part in each)
        ]
    return combined


def _is_missing(name: str, rows: dict[str, int]) -> bool:
    """Whether a name may mean that the label is missing."""
    if name == _NO_LABEL:
        return {"0", "1", "2"} <= rows.keys() and all(other.isdigit() for other in rows if other != name)
    return name.lower() in (*_MISSING, *_EXCEL_ERRORS)
