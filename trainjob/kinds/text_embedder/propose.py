"""Proposes a text embedder for data of which nothing is known."""

from trainjob.kinds.look import Look, Proposal, Unsuitable

_PAIR = ("anchor", "positive")
"""The names of the texts that belong together, where a third one, the negative, does not."""


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without two columns of texts, or those of triplets, and for a label that holds no
    numbers."""
    is_triplet = {*_PAIR, "negative"} <= set(look.columns)
    texts = _PAIR if is_triplet else look.texts
    if len(texts) != 2:
        raise Unsuitable(f"it learns from two columns of texts, but there are {len(texts)} of several words")
    text, other = texts
    score = None if is_triplet else look.score()
    comments = {
        "model": "trained from scratch; `pretrained: sentence-transformers/all-MiniLM-L6-v2` instead knows English",
        "textPair": "" if is_triplet else f"GUESSED: {'compared with' if score else 'belongs to'} the text of its row",
    }
    if score and not look.given:
        comments["label"] = "GUESSED: how similar both texts are"
    return Proposal(
        fit=2 if is_triplet else 0,
        model={"textEmbedder": {"encoder": {}}},
        dataset={"text": [text], "textPair": [other], **({"label": score} if score else {})},
        training={"epochs": 10, "earlyStopping": {"patience": 3}},
        comments=comments,
        notes=look.not_read([*texts, *([score] if score else [])]),
    )
