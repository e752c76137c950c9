"""Names, numbers and texts at random, and what documents are put together with."""

import string
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]
Strategy = st.SearchStrategy[Any]

names = st.sampled_from(["a", "x1", "main", "with-dash", "0", "n" * 63])
"""DNS labels."""


def trainjob_names() -> Strategy:
    """Names that a TrainJob may have: DNS labels joined by dots, at most 253 characters."""
    long = st.integers(40, 253).map(lambda length: ("long-name." * 26)[: length - 1] + "z")
    return st.from_regex(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?(\.[a-z0-9]{1,5})?", fullmatch=True) | long


def part(required: dict[str, Strategy] | None = None, /, **optional: Strategy) -> Strategy:
    """A mapping with all `required` and some of the `optional` fields."""
    return st.fixed_dictionaries(required or {}, optional=optional)


def one_of(**choices: Strategy) -> Strategy:
    """A choice: exactly one of the fields."""
    return st.one_of([st.fixed_dictionaries({name: value}) for name, value in choices.items()])


def merged(*parts: Strategy) -> Strategy:
    return st.tuples(*parts).map(lambda found: {name: value for each in found for name, value in each.items()})


positive = st.integers(1, 512)
fractions = st.floats(0, 0.99)
amounts = st.floats(1e-9, 1e3)
booleans = st.booleans()
columns = st.sampled_from(["title", "description", "Überschrift", "a column"])
uris = st.sampled_from(
    [
        "s3://data/a.csv",
        "gs://b/c/*.parquet",
        "https://example.com/x.jsonl",
        "/data/rows",
        "file:///d",
        "hf://datasets/a/b@v1/c",
    ]
)
folders = st.sampled_from(["s3://runs", "gs://b/c", "/data/runs", "file:///d"])
durations = st.tuples(st.integers(1, 9999), st.sampled_from("smhd")).map(lambda pair: f"{pair[0]}{pair[1]}")
quantities = st.tuples(st.sampled_from([1, 4096, 0.5, 1.25]), st.sampled_from(["M", "G", "Mi", "Gi"])).map(
    lambda pair: f"{pair[0]}{pair[1]}"
)
memory = quantities | st.integers(10**6, 10**12) | st.integers(10**6, 10**12).map(str)
cpus = st.floats(0.01, 128) | st.integers(1, 128) | st.sampled_from(["1", "0.5", "2.125", "500m", "64"])
label_values = st.sampled_from(["", "a", "team-1", "A.b_c", "x" * 63])
label_keys = st.sampled_from(["team", "example.com/team", "app.kubernetes.io/part-of", "UPPER_case.1"])
labels = st.dictionaries(label_keys, label_values, max_size=2)
json_values = st.recursive(
    st.none() | booleans | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(string.printable, max_size=10),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
