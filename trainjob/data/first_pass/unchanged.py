"""Checks that the data has not changed since a run was fitted on it."""

from dataclasses import replace

from trainjob.api import TrainJobSpec
from trainjob.data.first_pass.fitting import Fitted, fit
from trainjob.data.read.chunking import Mapper, one_by_one
from trainjob.data.read.fingerprint import changes_of, fingerprints, refuse_changes


def check_unchanged(spec: TrainJobSpec, before: Fitted, mapper: Mapper = one_by_one) -> Fitted:
    """Returns `before`, with the files as they are now. Raises DataError if the data has changed since it was fitted.

    If only the files' times have changed, reads the rows again, with `mapper`, to compare them.
    """
    assert spec.dataset is not None
    if not before.sources:  # written by an earlier version
        return before
    now = fingerprints(spec)
    changes = {name: change for name, old in before.sources.items() if (change := changes_of(old, now[name]))}
    if not changes and now != before.sources:
        again = fit(spec, mapper)
        changes = {
            name: f"rows {before.source_rows(name):,} → {again.source_rows(name):,}, "
            f"changed {old.changed} → {now[name].changed}"
            for name, old in before.sources.items()
            if again.contents[name] != before.contents[name]
        }
    refuse_changes(spec, changes)
    return replace(before, sources=now)
