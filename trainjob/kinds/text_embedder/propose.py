"""Proposes a text embedder for data of which nothing is known."""

from typing import Any

from trainjob.kinds.look import Look, Proposal, Unsuitable

_PAIR, _NEGATIVE = ("anchor", "positive"), "negative"
"""The usual names of the texts that belong together, and of a third one, which does not."""


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without two columns of texts, or those of triplets, and for a label that holds no
    numbers."""
    is_triplet = {*_PAIR, _NEGATIVE} <= set(look.columns)
    texts = _PAIR if is_triplet else look.texts
    if len(texts) != 2:
        raise Unsuitable(f"it learns from two columns of texts, but there are {len(texts)} of several words")
    text, other = texts
    score = None if is_triplet else look.score()
    more: dict[str, Any] = {"textNegative": [_NEGATIVE]} if is_triplet else {"label": score} if score else {}
    comments = {
        "model": "trained from scratch; `pretrained: sentence-transformers/all-MiniLM-L6-v2` instead knows English",
        "textPair": "" if is_triplet else f"GUESSED: {'compared with' if score else 'belongs to'} the text of its row",
    }
    if score and not look.given:
        comments["label"] = "GUESSED: how similar both texts are"
    return Proposal(
        fit=2 if is_triplet else 0,
        model={"textEmbedder": {"encoder": {}}},
        dataset={"text": [text], "textPair": [other], **more},
        training={"epochs": 10, "earlyStopping": {"patience": 3}},
        comments=comments,
        notes=look.not_read([*texts, *([_NEGATIVE] if is_triplet else [score] if score else [])]),
    )
