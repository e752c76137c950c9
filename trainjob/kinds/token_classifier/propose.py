"""Proposes a token classifier for unknown data."""

import pyarrow as pa

from trainjob.api import Dataset, Source
from trainjob.data.read.rows import OnBadRow, check_columns
from trainjob.data.read.spans import is_spans
from trainjob.errors import RowError
from trainjob.kinds.data_preview import SURE, DataPreview, Proposal, Unsuitable
from trainjob.kinds.token_classifier.kind import KIND

_ROWS = 100
"""Rows whose cells are looked at."""


def propose(preview: DataPreview) -> Proposal:
    """Raises Unsuitable for data without a column of spans in a column of texts."""
    if len(preview.named_labels) > 1:
        raise Unsuitable("it reads all spans from one column")
    check_columns(preview.named_labels, [*preview.columns, *preview.nested], preview.uri)
    texts = [name for name in preview.columns if name not in preview.named_labels]
    texts = [name for name in texts if preview.columns[name].is_text or name == "text"]
    bracketed = [name for name, column in preview.columns.items() if column.is_bracketed]
    labels = list(preview.named_labels or (*preview.nested, *bracketed))
    labels.sort(key=_unlikelihood)
    lists = [name for name, kind in preview.nested.items() if pa.types.is_list(kind) or pa.types.is_large_list(kind)]
    pairs = [(text, name) for name in labels for text in [*texts, *lists] if text != name]
    problems: list[RowError] = []
    found = next(((text, name) for text, name in pairs if _has_spans(preview.uri, text, name, problems.append)), None)
    if found is None:
        raise Unsuitable(
            "no column holds spans, such as [[0, 5, person]], of the texts in another one, or tags of its tokens"
            + (f" ({problems[0]})" if problems else "")
        )
    text, name = found
    return Proposal(
        confidence=SURE,
        model={"tokenClassifier": {"encoder": {}}},
        dataset={"text": [text], "label": name},
        training={"epochs": 20, "earlyStopping": {"patience": 5}},
        comments={
            "model": "trained from scratch; `pretrained: distilbert/distilbert-base-cased` instead knows English",
            "text": "lists of tokens, joined by single spaces" if text in preview.nested else "",
        },
        notes=preview.not_read([text, name]),
    )


def _unlikelihood(name: str) -> int:
    """A small number for the name of a column of spans or tags. The Hugging Face hub's sets also tag parts of
    speech."""
    return next(rank for rank, part in enumerate(("ner", "tag", "")) if part in name.lower())


def _has_spans(uri: str, text: str, name: str, on_bad: OnBadRow) -> bool:
    """Whether most of the first cells hold spans or tags, and any a span. `on_bad` is told of tags that cannot be
    read."""
    dataset = Dataset(train=Source(uri=uri), text=[text], label=name)
    for part in KIND.parts(dataset, dataset.train, None, labelled=True):
        for rows in part.read([text, name], on_bad):
            table = rows.table.slice(0, _ROWS)
            texts, cells = table[text].to_pylist(), table[name].to_pylist()
            usable = sum(is_spans(content or "", cell) for content, cell in zip(texts, cells, strict=True))
            return 2 * usable > len(table) and any(cell not in (None, "[]") for cell in cells)
    return False
