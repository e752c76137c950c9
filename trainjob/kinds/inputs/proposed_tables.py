"""Proposes a model of tables for unknown data."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainjob.errors import listed
from trainjob.kinds.data_preview import DataPreview, Proposal, Unsuitable, labels_of


def refuse_other_data(preview: DataPreview) -> None:
    """Raises Unsuitable for data without a table of numbers and words."""
    if preview.has_images or not preview.columns:
        raise Unsuitable("the data is not a table of numbers and words")


def refuse_labels_alone(preview: DataPreview, labels: Sequence[str]) -> None:
    """Raises Unsuitable where there are only labels."""
    if not set(preview.columns) - set(labels):
        raise Unsuitable(f"there is no column but {listed(labels)}")


def table_proposal(kind: str, preview: DataPreview, label: Mapping[str, Any], why: str) -> Proposal:
    """The proposal of a kind of model that answers rows of tables, with this field of the dataset. Raises Unsuitable
    where there are only texts beside the label."""
    labels = labels_of(label)
    texts = [name for name in preview.texts if name not in labels]
    columns, notes, has_others = dict[str, str](), list[str](), False
    for name, column in preview.columns.items():
        if name not in (*labels, *texts):
            has_others |= column.is_learned(name)
            if problem := column.problem(name):
                columns[name] = "ignore"
                notes.append(f"Left out: {problem}.")
    if texts and not has_others:
        raise Unsuitable(
            f"beside the label, only texts can be learned from ({listed(texts)}), which textClassifier and "
            "textRegressor learn"
        )
    columns = dict.fromkeys(texts, "text") | columns
    return Proposal(
        confidence=1,
        model={kind: {"tabm": {}} | ({"text": {"encoder": {}}} if texts else {})},
        dataset={**label, **({"columns": columns} if columns else {})},
        training={"epochs": 20 if texts else 100, "earlyStopping": {"patience": 4 if texts else 16}},
        comments={
            "model": "an ensemble of small networks; the report compares it with LightGBM",
            **dict.fromkeys(label, why),
            "columns": "a text encoder reads the texts" if texts else "otherwise an error, see above",
        },
        notes=notes,
    )
