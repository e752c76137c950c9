"""Whether this is `make soak`."""

import os

from hypothesis import settings

SOAK = "SOAK" in os.environ
"""Whether there is time for more jobs, more random seeds and many more random examples."""


def examples(usual: int) -> settings:
    """The number of examples for a random test with slow examples."""
    return settings(max_examples=usual * (30 if SOAK else 1))
