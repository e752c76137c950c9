"""The report's section on the data: the counts of the first pass over the rows of each set."""

from trainjob.api.data_profile import DataProfile
from trainjob.formatting import count, plain_number


def data_table(profile: DataProfile, has_texts: bool) -> list[dict[str, str]]:
    """The cells of each set by heading. `has_texts`: whether rows have a text, which may be empty."""
    return [
        {
            "Set": name,
            "Rows": count(found.rows),
            "Duplicates": count(found.duplicates),
            "Same input, other label": count(found.contradictions),
            **({"Without text": count(found.empty)} if has_texts else {}),
            "Among the training rows": "" if found.in_training is None else count(found.in_training),
            "Dropped": count(sum(each.rows for each in found.dropped)),
        }
        for name, found in profile.sets.items()
    ]


def class_facts(profile: DataProfile) -> list[tuple[str, str]]:
    """Sizes of the classes and the share of truncated texts: pairs of a term and its value."""
    facts: list[tuple[str, str]] = []
    if (sizes := profile.class_sizes) is not None:
        facts += [
            ("Smallest class", f"{sizes.smallest}: {count(sizes.smallest_rows)} training rows"),
            ("Median class", f"{sizes.median_rows:,.6g} training rows"),
            ("Largest class", f"{sizes.largest}: {count(sizes.largest_rows)} training rows"),
        ]
    facts += [(name, plain_number(value)) for name, value in (profile.label_range or {}).items()]
    if profile.cut_share is not None:
        facts.append(("Training texts longer than maxLength", f"{profile.cut_share:.1%}"))
    return facts
