"""Proposes a table classifier for data of which nothing is known."""

from trainjob.kinds.look import Look, Proposal, Unsuitable


def propose(look: Look, label: str | None) -> Proposal:
    """Raises Unsuitable for data without a table, and where the label is not clear."""
    if look.has_images or not look.columns:
        raise Unsuitable("the data is not a table of numbers and words")
    label, why = look.label(label)
    if look.columns[label].classes is None:
        raise Unsuitable(
            f'"{label}" has its own value in most rows, fractions or many different numbers, so it is not a class'
        )
    texts = [name for name in look.texts if name != label]
    return Proposal(
        fit=1,
        model={"tableClassifier": {"tabm": {}}},
        dataset={"label": label},
        training={"epochs": 100, "earlyStopping": {"patience": 16}},
        comments={
            "model": "an ensemble of small networks; the report compares it with LightGBM",
            "label": why,
        },
        notes=[f"Not read, because they are texts: {', '.join(texts)}."] if texts else [],
    )
