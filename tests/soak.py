"""Whether this is `make soak`."""

import os

SOAK = "SOAK" in os.environ
"""Whether there is time for more jobs, more random seeds and many more random examples."""
