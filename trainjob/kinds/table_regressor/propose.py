"""Proposes a table regressor for data of which nothing is known."""

from trainjob.kinds.look import Look, Proposal, Unsuitable


def propose(look: Look, label: str | None) -> Proposal:
    """Raises Unsuitable for data without a table of numbers and categories, and where no column is clearly the number
    to predict."""
    if look.has_images or not look.columns:
        raise Unsuitable("the data is not a table of numbers and words")
    label = look.number_label(label)
    texts = look.texts
    if not set(look.columns) - {label, *texts}:
        raise Unsuitable(f'no column but "{label}" holds numbers or categories')
    is_class = look.columns[label].classes is not None
    return Proposal(
        fit=0 if is_class else 1,
        model={"tableRegressor": {"tabm": {}}},
        dataset={"label": label},
        training={"epochs": 100, "earlyStopping": {"patience": 16}},
        comments={"model": "an ensemble of small networks; the report compares it with LightGBM"},
        notes=[f"Not read, because they are texts: {', '.join(texts)}."] if texts else [],
    )
