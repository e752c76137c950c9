"""Proposes a text regressor for data of which nothing is known."""

from trainjob.kinds.look import Look, Proposal, Unsuitable, text_fields


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without texts, and where the label is not clear or not a number."""
    if look.has_images or not look.texts:
        raise Unsuitable("no column holds texts of several words")
    label, why = look.number_label()
    texts = [name for name in look.texts if name != label]
    columns, comments = text_fields(texts)
    return Proposal(
        fit=0 if look.columns[label].classes is not None else 1 if why else 2,
        model={"textRegressor": {"encoder": {}}},
        dataset={**columns, "label": label},
        training={"epochs": 10, "earlyStopping": {"patience": 3}},
        comments={
            "model": "trained from scratch; `pretrained: distilbert/distilbert-base-uncased` instead knows English",
            **comments,
            "label": why,
        },
        notes=look.not_read([*texts, label]),
    )
