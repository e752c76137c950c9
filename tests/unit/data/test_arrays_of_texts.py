"""Arrays that are made without pandas, whose import takes half a second."""

import subprocess
import sys

import pytest

from trainjob.data.arrays import as_texts

PROGRAM = """
import sys
from trainjob.kinds.inputs.python_rows import table_of_texts

assert table_of_texts(["a", "ü"], ["title", "body"], str).to_pydict() == {"title": ["a", "ü"], "body": ["", ""]}
print("pandas" in sys.modules)
"""


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "größer", "\N{GRINNING FACE}\0"]])
def test_texts(texts: list[str]):
    array = as_texts(texts)
    array.validate(full=True)
    assert array.to_pylist() == texts


def test_texts_of_the_command_line_need_no_pandas():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.stdout == "False\n", done.stderr
