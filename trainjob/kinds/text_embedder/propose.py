"""Proposes a text embedder for data of which nothing is known."""

from trainjob.kinds.look import Look, Proposal, Unsuitable


def propose(look: Look, label: str | None) -> Proposal:
    """Raises Unsuitable for data without two columns of texts."""
    if label is not None:
        raise Unsuitable("it learns from pairs of texts, without a label")
    if len(look.texts) != 2:
        raise Unsuitable(f"it learns from two columns of texts, but there are {len(look.texts)} of several words")
    text, other = look.texts
    others = [name for name in look.columns if name not in look.texts]
    return Proposal(
        fit=0,
        model={"textEmbedder": {"encoder": {}}},
        dataset={"text": [text], "textPair": [other]},
        training={"epochs": 10, "earlyStopping": {"patience": 3}},
        comments={
            "model": "trained from scratch; `pretrained: sentence-transformers/all-MiniLM-L6-v2` instead knows English",
            "textPair": "GUESSED: belongs to the text of its row",
        },
        notes=[f"Not read: {', '.join(others)}."] if others else [],
    )
