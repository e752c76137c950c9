"""Proposes a text regressor for unknown data."""

from trainjob.kinds.look import Look, Proposal, Unsuitable, labels_of
from trainjob.kinds.text_classifier.propose import other_kind, text_fields


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without texts, and where the label is not clear or not a number."""
    if look.has_images or not look.texts:
        raise Unsuitable("no column holds texts of several words")
    fields, why = look.number_labels()
    labels = labels_of(fields)
    texts = [name for name in look.texts if name not in labels]
    columns, comments = text_fields(texts)
    read = [*texts, *labels]
    return Proposal(
        fit=0 if look.are_classes(labels) else 1 if why else 2,
        model={"textRegressor": {"encoder": {}}},
        dataset=columns | fields,
        training={"epochs": 10, "earlyStopping": {"patience": 3}},
        comments={
            "model": "trained from scratch; `pretrained: distilbert/distilbert-base-uncased` instead knows English",
            **comments,
            next(iter(fields)): why,
        },
        notes=[*look.not_read(read), *other_kind("tableRegressor", look, read)],
    )
