"""Proposes a text classifier for data of which nothing is known."""

from trainjob.kinds.look import Look, Proposal, Unsuitable, text_fields


def propose(look: Look) -> Proposal:
    """Raises Unsuitable for data without texts, and where the label is not clear."""
    if look.has_images or not look.texts:
        raise Unsuitable("no column holds texts of several words")
    several = look.several_labels()
    if several is None:
        label, why = look.label()
        labels, fields = [label], {"label": label}
    else:
        fields, why = several
        labels = [fields["label"]] if "label" in fields else fields["labels"]
    texts = [name for name in look.texts if name not in labels]
    if not texts:
        raise Unsuitable(f'no column but "{labels[0]}" holds texts of several words')
    columns, comments = text_fields(texts)
    return Proposal(
        fit=2,
        model={"textClassifier": {"encoder": {}}},
        dataset=columns | fields,
        training={"epochs": 10, "earlyStopping": {"patience": 3}},
        comments={
            "model": "trained from scratch; `pretrained: distilbert/distilbert-base-uncased` instead knows English",
            **comments,
            next(iter(fields)): why,
        },
        notes=look.not_read([*texts, *labels]),
    )
