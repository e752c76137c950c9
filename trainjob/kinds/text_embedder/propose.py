"""Proposes a text embedder for unknown data."""

from typing import Any

from trainjob.kinds.data_preview import DataPreview, Proposal, Unsuitable

_PAIR, _NEGATIVE = ("anchor", "positive"), "negative"
"""The usual names of the texts that belong together, and of a third one, which does not."""
_MODEL: dict[str, Any] = {"textEmbedder": {"encoder": {}}}
_TRAINING: dict[str, Any] = {"epochs": 10, "earlyStopping": {"patience": 3}}
_COMMENT = "trained from scratch; `pretrained: sentence-transformers/all-MiniLM-L6-v2` instead knows English"


def propose(preview: DataPreview) -> Proposal:
    """Raises Unsuitable for data without one or two columns of texts, or those of triplets, and for a label that holds
    no classes beside one, no numbers beside two."""
    is_triplet = {*_PAIR, _NEGATIVE} <= set(preview.columns)
    texts = _PAIR if is_triplet else preview.texts
    if len(single := [name for name in texts if name not in preview.named_labels]) == 1:
        return _of_classes(preview, single[0])
    if len(texts) != 2:
        raise Unsuitable(
            "it learns from two columns of texts, or from one and a class, but there are "
            f"{len(texts)} columns of several words"
        )
    text, other = texts
    score = None if is_triplet else preview.score()
    more: dict[str, Any] = {"textNegative": [_NEGATIVE]} if is_triplet else {"label": score} if score else {}
    comments = {
        "model": _COMMENT,
        "textPair": "" if is_triplet else f"GUESSED: {'compared with' if score else 'belongs to'} the text of its row",
    }
    if score and not preview.named_labels:
        comments["label"] = "GUESSED: how similar both texts are"
    return Proposal(
        confidence=2 if is_triplet else 0,
        model=_MODEL,
        dataset={"text": [text], "textPair": [other], **more},
        training=_TRAINING,
        comments=comments,
        notes=preview.not_read([*texts, *([_NEGATIVE] if is_triplet else [score] if score else [])]),
    )


def _of_classes(preview: DataPreview, text: str) -> Proposal:
    """Raises Unsuitable where the class of a text is not clear."""
    label, why = preview.label()
    return Proposal(
        confidence=0,
        model=_MODEL,
        dataset={"text": [text], "label": label},
        training=_TRAINING,
        comments={"model": _COMMENT, "label": why or "texts of the same class belong together"},
        notes=preview.not_read([text, label]),
    )
