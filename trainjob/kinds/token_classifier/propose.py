"""Proposes a token classifier for data of which nothing is known."""

from trainjob.api import Source
from trainjob.data.read.rows import as_json, as_text, check_columns, leave_out
from trainjob.data.read.spans import is_spans
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.look import Look, Proposal, Unsuitable

_ROWS = 100
"""Rows whose cells are looked at."""


def propose(look: Look, label: str | None) -> Proposal:
    """Raises Unsuitable for data without a column of spans in a column of texts."""
    if label is not None:
        check_columns([label], [*look.columns, *look.nested], look.uri)
    texts = [name for name in look.columns if name != label and (look.columns[name].is_text or name == "text")]
    labels = [label] if label is not None else list(look.nested)
    found = [(text, name) for name in labels for text in texts if _has_spans(look.uri, text, name)]
    if not found:
        raise Unsuitable("no column holds spans, such as [[0, 5, person]], of the texts in another one")
    text, name = found[0]
    others = [other for other in (*look.columns, *look.nested) if other not in (text, name)]
    return Proposal(
        fit=3,
        model={"tokenClassifier": {"encoder": {}}},
        dataset={"text": [text], "label": name},
        training={"epochs": 20, "earlyStopping": {"patience": 5}},
        comments={
            "model": "trained from scratch; `pretrained: distilbert/distilbert-base-cased` instead knows English",
        },
        notes=[f"Not read: {', '.join(others)}."] if others else [],
    )


def _has_spans(uri: str, text: str, name: str) -> bool:
    """Whether most of the first cells hold spans, and any a span."""
    for part in table_parts(Source(uri=uri), None, "tokenClassifier", nested=[name]):
        for rows in part.read([text, name], leave_out):
            table = rows.table.slice(0, _ROWS)
            texts = as_text(table[text], text, rows.where).to_pylist()
            cells = as_json(table[name], name, rows.where).to_pylist()
            usable = sum(is_spans(content or "", cell) for content, cell in zip(texts, cells, strict=True))
            return 2 * usable > len(table) and any(cell not in (None, "[]") for cell in cells)
    return False
