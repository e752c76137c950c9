"""What is told of a replica that does not start."""

from trainjob.errors import TransientError
from trainjob.serving.server import failure

TRACEBACK = """The deployment failed to start 1 times in a row. Error:
ray::ServeReplica:model:Model.initialize() (pid=1, ip=127.0.0.1)
  File "replica.py", line 1, in __init__
trainjob.errors.UserError: runs/tags/model: the model is damaged: header too small
"""


def test_a_mistake_is_told_in_its_own_words():
    assert str(failure(TRACEBACK)) == "runs/tags/model: the model is damaged: header too small"


def test_anything_else_is_told_by_its_last_line():
    error = failure("Error:\n  File x\nMemoryError: no room\n\n")
    assert isinstance(error, TransientError)
    assert str(error) == "the model cannot be served: MemoryError: no room"
    assert "does not say why" in str(failure(""))
