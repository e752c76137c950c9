"""Libraries imported quickly: without modules that no kind of model needs."""

import subprocess
import sys

PROGRAM = """
import sys
from importlib.util import find_spec
from trainjob.launch.quick_imports import quick_imports

with quick_imports():
    import trainjob.kinds.text_classifier.network
    find_spec("transformers.loss.another")  # the last one
from transformers.utils import is_scipy_available
print("scipy" in sys.modules, is_scipy_available())
"""


def test_transformers_is_imported_without_scipy():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False True\n", done.stderr
