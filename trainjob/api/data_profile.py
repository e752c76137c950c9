"""Statistics of the first pass over each set: duplicates, contradictions, overlap with the training rows."""

from collections.abc import Iterator
from typing import NamedTuple

from trainjob.schema.base import StrictModel

FEW_ROWS = 10
"""A class with fewer training rows is called rare."""
INVALID_SHARE = 0.5
"""If more of a held-out set's rows are in the training set, its scores measure memorization, not generalization."""
MANY_DROPPED = 0.1
"""If more of a set's rows were dropped, the rest may not represent new rows."""
MANY_CUT = 0.01
"""Fraction of truncated texts that warrants a remark."""


class Dropped(StrictModel):
    """Rows dropped because of one kind of fault."""

    reason: str
    """The fault."""
    rows: int
    """The number of rows."""
    first: list[str]
    """Files and numbers of the first of these rows."""


class SetProfile(StrictModel):
    """Statistics of one set. Inputs are compared unprocessed: texts, or the bytes of images."""

    rows: int
    """Rows used."""
    duplicates: int = 0
    """Rows with the same input and label as an earlier row of the set."""
    contradictions: int = 0
    """Rows whose input also occurs in the set with another label."""
    empty: int = 0
    """Rows without text."""
    in_training: int | None = None
    """Rows whose input is also in the training set; none for the training set itself."""
    dropped: list[Dropped] = []
    """Rows dropped by `dataset.onBadRows: drop`; those of a split source are counted under `train`."""
    source_rows: int | None = None
    """Rows of its source, including dropped rows and rows set aside for validation; none if nothing was dropped."""


class ClassSizes(StrictModel):
    """Distribution of the training rows over the classes."""

    classes: int
    """Number of classes."""
    rare: int
    """Classes with fewer than 10 rows."""
    smallest: str
    """Name of the class with the fewest rows."""
    smallest_rows: int
    """The number of its rows."""
    median_rows: float
    """Median rows of a class."""
    largest: str
    """Name of the class with the most rows."""
    largest_rows: int
    """The number of its rows."""


class Remark(NamedTuple):
    """Something users should know about their data."""

    text: str
    is_severe: bool = False
    """Whether scores mean nothing because of it."""


class DataProfile(StrictModel):
    """Statistics of the first pass."""

    sets: dict[str, SetProfile]
    """By set: `train`, `validation` and, if present, `test` and `unlabelled`."""
    cut_share: float | None = None
    """Fraction of the training texts that are longer than `maxLength` tokens, measured on a sample; none where texts
    are not truncated."""
    class_sizes: ClassSizes | None = None
    """None if labels are not classes."""
    label_range: dict[str, float] | None = None
    """Statistics of training labels that are numbers, by name."""
    notes: list[str] = []
    """Other remarks on the training rows."""
    folders: list[str] = []
    """The folders of `dataset.train` that serve as sets, by set."""

    @property
    def remarks(self) -> list[Remark]:
        """The remarks, severe ones first."""
        return sorted(self._remarks(), key=lambda remark: not remark.is_severe)

    def _remarks(self) -> Iterator[Remark]:
        for name, profile in self.sets.items():
            yield from _overlap(name, profile)
        for name, profile in self.sets.items():
            yield from _dropped(name, profile)
            for rows, problem in (
                (profile.contradictions, "have the same input as another row, but another label"),
                (profile.duplicates, "are duplicates"),
                (profile.empty, "have no text"),
            ):
                if rows:
                    yield Remark(f"{_count_and_share(rows, profile.rows)} of the {_named(name)} rows {problem}")
        if self.cut_share is not None and self.cut_share >= MANY_CUT:
            yield Remark(
                f"about {_percent(self.cut_share)} of the training texts are longer than maxLength and are cut"
            )
        if self.class_sizes is not None and self.class_sizes.rare:
            sizes = self.class_sizes
            yield Remark(
                f"{sizes.rare:,} of {sizes.classes:,} classes have fewer than {FEW_ROWS} training rows; the smallest, "
                f'"{sizes.smallest}", has {sizes.smallest_rows:,}'
            )
        yield from map(Remark, self.notes)


def _overlap(name: str, profile: SetProfile) -> Iterator[Remark]:
    if not profile.in_training:
        return
    share = f"{_count_and_share(profile.in_training, profile.rows)} of the {name} rows are among the training rows"
    if profile.in_training >= INVALID_SHARE * profile.rows:
        yield Remark(f"{share}: its scores say nothing about new rows; remove these rows from one of the two", True)
    else:
        yield Remark(f"{share}, which makes its scores too optimistic")


def _dropped(name: str, profile: SetProfile) -> Iterator[Remark]:
    for each in profile.dropped:
        count = "1 row" if each.rows == 1 else f"{each.rows:,} rows"
        yield Remark(f"dropped {count} of {name}: {each.reason} ({_locations(each)})")
    dropped = sum(each.rows for each in profile.dropped)
    if profile.source_rows is not None and dropped > MANY_DROPPED * profile.source_rows:
        share = f"{_count_and_share(dropped, profile.source_rows)} of the {_named(name)} rows were dropped"
        if name == "unlabelled":
            yield Remark(f"{share}: correct them, so that the model learns from them, too")
        else:
            yield Remark(
                f"{share}: scores on those that are left may say little about new rows; correct the rows", True
            )


def _named(set_name: str) -> str:
    return "training" if set_name == "train" else set_name


def _locations(dropped: Dropped) -> str:
    more = dropped.rows - len(dropped.first)
    return "; ".join(dropped.first) + (f" and {more:,} more" if more > 0 else "")


def _count_and_share(count: int, total: int) -> str:
    return f"{count:,} ({_percent(count / total)})"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.095 else f"{100 * share:.2g}%"
