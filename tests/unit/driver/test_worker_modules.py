"""Modules that are imported before workers are forked: without Ray, which keeps the environment of its process, and
without threads, which a fork does not have."""

import os
import subprocess
import sys

from trainjob.launch.fast.ray_worker import FORK_ENVIRONMENT

PROGRAM = """
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import get_args
from trainjob.driver.early_workers import LOCAL_MODULES, worker_modules
from trainjob.kinds.function.spec import Function
from trainjob.kinds.model import KindSpec
from trainjob.kinds.text_network import PooledEncoder
from trainjob.launch.fast.fork_server import is_safe_to_fork

text = PooledEncoder(pretrained="a-network")
for kind in set(get_args(KindSpec)) - {Function}:
    for spec in (kind.model_construct(), kind.model_construct(pretrained="a-network", text=text)):
        for module in (*LOCAL_MODULES, *worker_modules(SimpleNamespace(model=SimpleNamespace(kind=spec)))):
            import_module(module)
print(is_safe_to_fork(), "ray" in sys.modules)
"""


def test_workers_can_be_forked_after_their_modules_are_imported():
    environment = os.environ | FORK_ENVIRONMENT | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == "True False\n", done.stderr
