"""The program that Ray starts instead of Python: scripts run in forks of one process, or without forks."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from cluster.component import ENDS_WITH_US
from cluster.jobs import eventually
from trainjob.launch.fast import ray_fork_server, ray_worker

TELLS = """
import json, os, sys
me = {"arguments": sys.argv[1:], "folder": os.getcwd(), "value": os.environ.get("VALUE"), "name": __name__}
me |= {"pid": os.getpid(), "parent": os.getppid(), "group": os.getpgid(0), "has": "decimal" in sys.modules}
me["modules"] = [__import__("beside").NAME, __import__("elsewhere").NAME]
print(json.dumps(me))
"""
WAITS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"

Start = Callable[..., "subprocess.Popen[str]"]


def has_ended(process: psutil.Process) -> bool:
    """Whether the process has ended; true also for a zombie."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def is_listening(name: str) -> bool:
    return ray_worker.address_of(name).encode()[1:] in Path("/proc/net/unix").read_bytes()


def hasty_server(name: str) -> list[str]:
    """The command of a fork server that ends half a second after the last request or worker."""
    program = f"import {ray_fork_server.__name__} as server; server.IDLE_SECONDS = 0.5; server.main()"
    return [sys.executable, "-c", program, name, str(os.getpid()), "decimal"]


@pytest.fixture
def owner() -> "Generator[subprocess.Popen[bytes]]":
    """A process in place of Ray's process on a node."""
    process = subprocess.Popen([*ENDS_WITH_US, sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def name() -> str:
    """The name of a fork server of the test's own."""
    return f"test {uuid4()}"


@pytest.fixture
def start(tmp_path: Path, owner: "subprocess.Popen[bytes]", name: str) -> Generator[Start]:
    """Starts a script as Ray does, on a node of the test's own."""
    started = ExitStack()
    (tmp_path / "beside.py").write_text("NAME = 'beside'")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "elsewhere.py").write_text("NAME = 'elsewhere'")

    own = {"RAY_RAYLET_PID": str(owner.pid), "PYTHONPATH": str(tmp_path / "more")}

    def start(script: str, *arguments: str, modules: str = "decimal", **environment: str) -> "subprocess.Popen[str]":
        file = tmp_path / f"{uuid4().hex}.py"
        file.write_text(script)
        command = [sys.executable, "-I", "-S", ray_worker.__file__, name, "3", modules, str(file), *arguments]
        process = subprocess.Popen(
            [*ENDS_WITH_US, *command],
            env=os.environ | own | environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.enter_context(process)
        started.callback(process.kill)
        return process

    with started:
        yield start


def test_scripts_run_in_forks_of_one_process_as_in_processes_of_their_own(start: Start, tmp_path: Path):
    first, second = start(TELLS, "a", "b c", VALUE="\N{ROCKET}\n"), start(TELLS)
    one, two = (json.loads(each.communicate(timeout=60)[0]) for each in (first, second))
    assert one["parent"] == two["parent"] not in (os.getpid(), first.pid, second.pid)
    assert one["pid"] != two["pid"]
    assert (one["group"], two["group"]) == (one["pid"], two["pid"])
    assert (one["arguments"], one["value"], one["folder"]) == (["a", "b c"], "\N{ROCKET}\n", str(tmp_path))
    assert (two["arguments"], two["value"]) == ([], None)
    assert one["has"]
    assert (one["name"], one["modules"]) == ("__main__", ["beside", "elsewhere"])
    assert (first.wait(), second.wait()) == (0, 0)


def test_it_ends_with_its_worker(start: Start):
    starter = start(WAITS)
    assert starter.stdout is not None
    worker = psutil.Process(int(starter.stdout.readline()))
    assert starter.poll() is None
    worker.kill()
    assert starter.wait(timeout=30) == 0
    eventually(lambda: has_ended(worker))


def test_the_server_ends_with_its_owner_and_the_workers_go_on(start: Start, owner: "subprocess.Popen[bytes]"):
    starter = start(WAITS)
    assert starter.stdout is not None
    worker = psutil.Process(int(starter.stdout.readline()))
    server = worker.parent()
    assert server is not None
    owner.kill()
    owner.wait()
    eventually(lambda: has_ended(server))
    assert not has_ended(worker)
    assert starter.poll() is None
    worker.kill()


@pytest.mark.parametrize(
    ("modules", "text"),
    [
        ("threaded", "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()"),
        ("broken", "raise ValueError"),
        ("missing", ""),
        ("ending", "import os\nos._exit(1)"),
    ],
)
def test_where_nothing_can_be_forked_the_script_runs_all_the_same(
    start: Start, tmp_path: Path, modules: str, text: str
):
    if text:
        (tmp_path / "more" / f"{modules}.py").write_text(text)
    starter = start(TELLS, "a", modules=modules)
    found = json.loads(starter.communicate(timeout=60)[0])
    assert (found["pid"], found["arguments"], found["has"]) == (starter.pid, ["a"], False)
    assert starter.returncode == 0


def test_a_script_that_fails_says_so_where_the_starter_writes(start: Start):
    starter = start("import sys; sys.stderr = sys.stdout; print('before', flush=True); 1 / 0")
    assert "ZeroDivisionError" in starter.communicate(timeout=60)[0]


def test_a_server_that_was_killed_is_started_anew(start: Start):
    first = json.loads(start(TELLS).communicate(timeout=60)[0])
    psutil.Process(first["parent"]).kill()
    time.sleep(0.2)
    second = json.loads(start(TELLS).communicate(timeout=60)[0])
    assert second["parent"] != first["parent"]
    assert second["has"]


def test_a_server_that_nobody_asks_ends():
    assert subprocess.run(hasty_server(f"test {uuid4()}"), timeout=60).returncode == 0


def test_a_server_that_nobody_asks_goes_on_while_it_has_workers(start: Start, name: str):
    with subprocess.Popen([*ENDS_WITH_US, *hasty_server(name)]) as server:
        eventually(lambda: is_listening(name))
        starter = start(WAITS)
        assert starter.stdout is not None
        worker = psutil.Process(int(starter.stdout.readline()))
        assert worker.ppid() == server.pid
        time.sleep(1.5)
        assert server.poll() is None
        worker.kill()
        assert server.wait(timeout=30) == 0


def test_a_server_that_a_pod_has_started_imports_the_modules_of_a_worker(start: Start, name: str, tmp_path: Path):
    program = (
        f"import {ray_fork_server.__name__} as server\n"
        f"server.POD_SERVER, server._POD_MODULES = {name!r}, ('json',)\n"
        "server.main()"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "more")}
    with subprocess.Popen([*ENDS_WITH_US, sys.executable, "-c", program], env=environment) as server:
        eventually(lambda: is_listening(name))
        with socket.socket(socket.AF_UNIX) as silent:  # ends before it has asked for anything
            silent.connect(ray_worker.address_of(name))
        found = json.loads(start(TELLS, "a", VALUE="1").communicate(timeout=60)[0])
        server.kill()
    assert (found["parent"], found["has"]) == (server.pid, True)
    assert (found["arguments"], found["value"]) == (["a"], "1")


def test_nobody_else_is_forked_for(monkeypatch: pytest.MonkeyPatch):
    one, other = socket.socketpair()
    with one, other:
        assert ray_worker.is_ours(one)
        monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
        assert not ray_worker.is_ours(one)
