"""Variants of a test that run at night alone: docs/decisions/tests-at-night.md."""

from typing import Any

import pytest


def at_night(*values: Any) -> Any:
    """A `parametrize` argument for a variant that `make test` leaves out."""
    return pytest.param(*values, marks=pytest.mark.nightly)
