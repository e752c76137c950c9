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
from trainjob.driver.built_in import _LOCAL_MODULES, _worker_modules
from trainjob.kinds import PACKAGES
from trainjob.kinds.registry import load_kind
from trainjob.launch.fast.fork_server import is_safe_to_fork

for field in PACKAGES.keys() - {"function"}:
    for pretrained in (None, "a-network"):
        spec = SimpleNamespace(pretrained=pretrained, text=pretrained)
        model = SimpleNamespace(facts=load_kind(field).facts, kind=spec)
        for module in (*_LOCAL_MODULES, *_worker_modules(SimpleNamespace(model=model))):
            import_module(module)
print(is_safe_to_fork(), "ray" in sys.modules)
"""


def test_workers_can_be_forked_after_their_modules_are_imported():
    environment = os.environ | FORK_ENVIRONMENT | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == "True False\n", done.stderr
