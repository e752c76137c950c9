"""Whether this is `make soak`."""

import os

from hypothesis import settings

SOAK = "SOAK" in os.environ
"""Whether there is time for more jobs, more random seeds and many more random examples."""


def examples(usual: int) -> settings:
    """How many a random test tries whose examples take longer than those of others."""
    return settings(max_examples=usual * (30 if SOAK else 1))
