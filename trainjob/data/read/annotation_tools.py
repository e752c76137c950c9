"""Rows as annotation tools write them: tasks of Label Studio, and lines of Prodigy.

A task of Label Studio's JSON becomes a row with its data, and a column for each control, named as the control. Rows
without an answer that counts, such as skipped and rejected ones, say so in their `problem`.
"""

import json
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from trainjob.errors import DataError, RowError
from trainjob.formatting import cut

RESULT = "result"
"""The key of the marks of an annotator."""
_PLAIN = {"rating": "rating", "number": "number", "datetime": "datetime", "pairwise": "selected"}
"""The key of the value of each type of control that answers a whole task with one value."""
_LISTED = {"choices": "choices", "textarea": "text"}
"""The key of the value of each type of control that answers with a list."""
_SKIPPED, _NOT_ANNOTATED = (f"the task {what} in Label Studio" for what in ("was skipped", "has no annotation"))
_MAX_CHARACTERS = 60
_OF_A_PART = {"start", "x"}
"""Keys of a value that belongs to a part of a text or an image."""


class AnnotatedRow(dict[str, Any]):
    """A row that an annotation tool has written."""

    def __init__(self, row: dict[str, Any], problem: str = "") -> None:
        super().__init__(row)
        self.problem = problem
        """Why the labels of the row do not count; empty if they do."""


@dataclass(frozen=True)
class Disagreement:
    """The value of a control that several annotators answer differently."""

    annotations: int
    answers: tuple[Any, ...]
    """The different answers."""

    def __str__(self) -> str:
        return f"{self.annotations:,} annotations, such as {_shown(self.answers[0])} and {_shown(self.answers[1])}"


def _shown(answer: Any) -> str:
    text = "nothing" if answer is None else json.dumps(answer, ensure_ascii=False)
    return cut(text, _MAX_CHARACTERS)


def as_row(row: dict[str, Any], where: str) -> dict[str, Any]:
    """The row as a table has it. Raises DataError for a control with the name of a column of the data."""
    if _is_task(row):
        return _row_of_task(row, where)
    if "_task_hash" in row and "answer" in row:
        refused = row["answer"] in ("reject", "ignore")
        return AnnotatedRow(row, f'the answer in Prodigy is "{row["answer"]}"' if refused else "")
    if "annotation_id" in row and "annotator" in row:
        found = {name: _of_json_min(value) for name, value in row.items()}
        return AnnotatedRow(found, _NOT_ANNOTATED if row["annotation_id"] is None else "")
    return row


def has_columns_of_a_tool(names: Container[str]) -> bool:
    """Whether some of these names are an annotation tool's own columns, such as who annotated a row and when."""
    return ("_task_hash" in names and "answer" in names) or ("annotation_id" in names and "annotator" in names)


def checked_row(row: dict[str, Any], columns: Sequence[str], where: str) -> dict[str, Any]:
    """The row. Raises RowError if its labels do not count, or annotators disagree on one of `columns`."""
    if not isinstance(row, AnnotatedRow):
        return row
    problem, detail = row.problem, ""
    for name in columns:
        value = row.get(name)
        if isinstance(value, Disagreement) and not problem:
            problem, detail = f'annotators answer "{name}" differently', str(value)
    if not problem:
        return row
    advice = "decide in Label Studio which is the ground truth, or drop the row" if detail else "drop the row"
    raise RowError(f"{where}: {problem}: {detail or 'its labels do not count'}; {advice}", where, problem, detail)


def settled_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row, with nothing where annotators disagree."""
    if not isinstance(row, AnnotatedRow):
        return row
    return {name: None if isinstance(value, Disagreement) else value for name, value in row.items()}


def with_empty_results(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows, in which annotated ones without a value in one of `columns` have `{"result": []}` there, unless it is
    a column of plain values: an annotator has marked nothing."""
    names = [name for name in columns if all(_is_nested(row.get(name)) for row in rows)]
    if not names:
        return list(rows)
    return [
        {**row, **{name: {RESULT: []} for name in names if row.get(name) is None}}
        if isinstance(row, AnnotatedRow) and not row.problem
        else row
        for row in rows
    ]


def _is_nested(value: Any) -> bool:
    return value is None or isinstance(value, (dict, list))


def _is_task(row: dict[str, Any]) -> bool:
    """Whether a row is a task of Label Studio."""
    annotations = row.get("annotations")
    if not isinstance(annotations, list) or not isinstance(row.get("data"), dict):
        return False
    return all(isinstance(each, dict) and isinstance(each.get(RESULT), list) for each in annotations)


def _row_of_task(task: dict[str, Any], where: str) -> AnnotatedRow:
    """The row of a task. If annotations are marked as ground truth, the others are ignored."""
    data, annotations = task["data"], task["annotations"]
    given = [each for each in annotations if not each.get("was_cancelled")]
    given = [each for each in given if each.get("ground_truth")] or given
    answers = [_answers(each[RESULT]) for each in given]
    row = dict(data)
    for name in dict.fromkeys(name for each in answers for name in each):
        if name in data:
            raise DataError(
                f'{where}: the control "{name}" has the name of a column of the data in Label Studio: rename one'
            )
        values = [each.get(name) for each in answers]
        different = {_canonical(value): value for value in values}
        row[name] = values[0] if len(different) == 1 else Disagreement(len(values), tuple(different.values()))
    return AnnotatedRow(row, "" if given else _SKIPPED if annotations else _NOT_ANNOTATED)


def _answers(results: list[Any]) -> dict[str, Any]:
    """The value of each control."""
    by_control = defaultdict[str, list[dict[str, Any]]](list)
    for each in results:
        if isinstance(each, dict) and isinstance(each.get("from_name"), str) and isinstance(each.get("value"), dict):
            by_control[each["from_name"]].append(each)
    return {name: _value(found) for name, found in by_control.items()}


def _value(found: list[dict[str, Any]]) -> Any:
    """The answer of a control: one value, `{"choices": […]}` of several choices, or the list of all its values."""
    values = [each["value"] for each in found]
    value, kind = values[0], str(found[0].get("type"))
    if len(values) > 1 or _OF_A_PART & value.keys():
        return values
    if kind in _PLAIN:
        return value.get(_PLAIN[kind])
    listed = value.get(_LISTED.get(kind, ""))
    if isinstance(listed, list):
        return listed[0] if len(listed) == 1 else value
    return values


def _of_json_min(value: Any) -> Any:
    """A rating or number of JSON-MIN, which writes `[{"rating": 4}]`, as a number; any other value as it is."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and len(value[0]) == 1:
        ((name, number),) = value[0].items()
        return number if name in ("rating", "number") else value
    return value


def _canonical(value: Any) -> str:
    """The same text for values that differ only in their order."""
    if isinstance(value, dict):
        value = {name: _canonical(each) for name, each in value.items()}
    if isinstance(value, list):
        value = sorted(map(_canonical, value))
    return json.dumps(value, sort_keys=True)
