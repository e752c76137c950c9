"""Proposes a model of texts for unknown data."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainjob.data.read.annotation_tools import has_columns_of_a_tool
from trainjob.errors import listed
from trainjob.kinds.data_preview import DataPreview, Proposal, Unsuitable, labels_of

_PAIRS = (("premise", "hypothesis"), ("question", "answer"), ("query", "passage"), ("context", "response"))


def refuse_without_texts(preview: DataPreview) -> None:
    """Raises Unsuitable for data without texts."""
    if preview.has_images or not preview.texts:
        raise Unsuitable("no column holds texts of several words")


def text_proposal(
    kind: str, preview: DataPreview, fields: Mapping[str, Any], why: str, table_kind: str | None = None
) -> Proposal:
    """The proposal of a kind of model that answers texts, with these fields of the dataset. `table_kind` also learns
    from other columns. Raises Unsuitable where the label is the only text."""
    labels = labels_of(fields)
    texts = [name for name in preview.texts if name not in labels]
    if not texts:
        raise Unsuitable(f'no column but "{labels[0]}" holds texts of several words')
    columns, comments = _text_fields(texts)
    read = [*texts, *labels]
    return Proposal(
        confidence=2,
        model={kind: {"encoder": {}}},
        dataset={**columns, **fields},
        training={"epochs": 10, "earlyStopping": {"patience": 3}},
        comments={
            "model": "trained from scratch; `pretrained: distilbert/distilbert-base-uncased` instead knows English",
            **comments,
            next(iter(fields)): why,
        },
        notes=[*preview.not_read(read), *(_other_kind(table_kind, preview, read) if table_kind else [])],
    )


def _other_kind(kind: str, preview: DataPreview, read: Sequence[str]) -> list[str]:
    """A note on the kind of model that learns from numbers and categories, if columns beside those `read` hold some
    that the user gave."""
    if has_columns_of_a_tool(preview.names):
        return []
    others = [name for name, column in preview.columns.items() if name not in read and column.is_learned(name)]
    learned = f"`--kind {kind}` also learns from {listed(others)}."
    return [learned] if others else []


def _text_fields(texts: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields of the dataset for the columns of texts, and comments on them. Two columns whose names are usual for
    pairs, such as question1 and question2, are one."""
    if len(texts) == 2 and _is_pair(*(re.sub(r"[^a-z0-9]", "", name.lower()) for name in texts)):
        return {"text": [texts[0]], "textPair": [texts[1]]}, {"textPair": "GUESSED: read as a pair with the text"}
    return {"text": list(texts)}, {"text": "joined by a space" if len(texts) > 1 else ""}


def _is_pair(first: str, second: str) -> bool:
    numbered = first[:-1] == second[:-1] and first[-1:] + second[-1:] in ("12", "ab")
    return numbered or (first, second) in _PAIRS
