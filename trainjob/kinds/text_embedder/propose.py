"""Proposes a text embedder for data of which nothing is known."""

from trainjob.kinds.look import Look, Proposal, Unsuitable

_PAIR = ("anchor", "positive")
"""The names of the texts that belong together, where a third one, the negative, does not."""


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without two columns of texts, or those of triplets."""
    if look.given:
        raise Unsuitable("it learns from pairs of texts, without a label")
    is_triplet = {*_PAIR, "negative"} <= set(look.columns)
    texts = _PAIR if is_triplet else look.texts
    if len(texts) != 2:
        raise Unsuitable(f"it learns from two columns of texts, but there are {len(texts)} of several words")
    text, other = texts
    return Proposal(
        fit=2 if is_triplet else 0,
        model={"textEmbedder": {"encoder": {}}},
        dataset={"text": [text], "textPair": [other]},
        training={"epochs": 10, "earlyStopping": {"patience": 3}},
        comments={
            "model": "trained from scratch; `pretrained: sentence-transformers/all-MiniLM-L6-v2` instead knows English",
            "textPair": "" if is_triplet else "GUESSED: belongs to the text of its row",
        },
        notes=look.not_read(texts),
    )
