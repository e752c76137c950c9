"""Local workers: forks of one server that has imported their libraries, whose failures the driver hears of."""

import os
import socket
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from worker_functions import (
    exit_with,
    fail_on_rank_1_while_rank_0_waits,
    introduce,
    kill_server,
    killed_on_rank_1,
    leave,
    own_and_all_memory,
    raise_what_does_not_travel,
)

from trainjob.api.trainjob import Workers
from trainjob.errors import Diverged, TransientError
from trainjob.launch import local
from trainjob.launch.local import LocalWorkers
from trainjob.launch.worker_errors import WorkerError

pytestmark = pytest.mark.slow

SERVER, WORKER = "trainjob.launch.fast.fork_server", "trainjob.launch.local_worker"


@pytest.fixture(scope="module")
def module_path(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Lets the server's processes import what lies beside this file, in a folder with files named like Python's own
    modules."""
    folder = tmp_path_factory.mktemp("working-directory")
    for name in ("random", "tokenize"):
        (folder / f"{name}.py").write_text("raise RuntimeError('not the standard library')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        patch.chdir(folder)
        yield


@pytest.fixture(scope="module")
def workers(module_path: None) -> Generator[LocalWorkers]:
    with LocalWorkers(Workers(count=2), 1, ["worker_functions"]) as workers:
        yield workers


def test_workers_are_forks_of_one_server(workers: LocalWorkers):
    first, second = workers.run(introduce), workers.run(introduce)
    assert [rank for rank, _, _ in first["everybody"]] == [0, 1]
    processes = {pid for found in (first, second) for _, pid, _ in found["everybody"]}
    servers = {parent for found in (first, second) for _, _, parent in found["everybody"]}
    assert len(processes) == 4
    assert len(servers) == 1
    assert SERVER in first["command"]


def test_workers_have_a_session_of_their_own_and_their_threads(workers: LocalWorkers):
    found = workers.run(introduce)
    assert found["session"] != os.getsid(0)
    assert found["threads"] == "1"


def test_workers_share_the_libraries_memory(workers: LocalWorkers):
    own, everything = workers.run(own_and_all_memory)
    assert own < everything / 2


def test_the_failure_of_one_ends_the_others(workers: LocalWorkers):
    with pytest.raises(Diverged, match="rank 1 is at fault"):
        workers.run(fail_on_rank_1_while_rank_0_waits)


@pytest.mark.parametrize(
    ("function", "said", "log"),
    [
        (killed_on_rank_1, "worker 1 failed: WorkerDied: was killed by signal 9", ""),
        (partial(exit_with, 3), "worker 0 failed: WorkerDied: exited with code 3", "these are my reasons"),
        (partial(exit_with, 0), "worker 0 failed: WorkerDied: exited with code 0", "these are my reasons"),
        (leave, "worker 0 failed: WorkerDied: exited with code 1", "these are my reasons"),
        (raise_what_does_not_travel, "worker 0 failed: WorkerDied: exited with code 1", "this does not travel"),
    ],
)
def test_a_worker_that_dies_is_told_with_its_log(
    workers: LocalWorkers, function: Callable[[], Any], said: str, log: str
):
    with pytest.raises(WorkerError) as failure:
        workers.run(function)
    assert str(failure.value) == said
    assert log in failure.value.traceback


def test_a_dead_server_is_told_and_started_again(workers: LocalWorkers):
    with pytest.raises(WorkerError, match="the process that starts the workers was killed by signal 9"):
        workers.run(kill_server)
    assert len(workers.run(introduce)["everybody"]) == 2


def test_libraries_that_cannot_be_imported_are_told(module_path: None):
    with (
        LocalWorkers(Workers(count=1), 1, ["there_is_no_such_module"]) as workers,
        pytest.raises(WorkerError, match="the process that starts the workers exited with code 1") as failure,
    ):
        workers.run(introduce)
    assert "No module named 'there_is_no_such_module'" in failure.value.traceback


def test_files_named_like_pythons_own_modules_are_not_imported(workers: LocalWorkers):
    assert Path("random.py").exists()
    assert len(workers.run(introduce)["everybody"]) == 2


@pytest.mark.nightly
def test_beside_threads_workers_are_new_processes(module_path: None):
    with LocalWorkers(Workers(count=2), 1, ["starts_a_thread"]) as workers:
        found = workers.run(introduce)
        assert WORKER in found["command"]
        server = psutil.Process(found["everybody"][0][2])
    assert not server.is_running()


def test_a_port_is_one_that_nothing_else_is_given_meanwhile(monkeypatch: pytest.MonkeyPatch):
    outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    with local._reserved_port() as port, socket.socket() as rank_0:  # noqa: SLF001
        assert port < outgoing
        monkeypatch.setattr(local, "PORTS", range(port, port + 1))
        with pytest.raises(TransientError, match=f"none of the ports {port} to {port}"), local._reserved_port():  # noqa: SLF001
            pass
        rank_0.bind(("", port))
    with local._reserved_port() as again:  # noqa: SLF001
        assert again == port
    with socket.socket() as taken:
        taken.bind(("", port))
        with pytest.raises(TransientError), local._reserved_port():  # noqa: SLF001
            pass
