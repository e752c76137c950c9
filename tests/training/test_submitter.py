"""The process of a RayJob's submitter pod, beside a real head with its dashboard, where jobs are handed in.

Ray's own first line in a job's log ("Running entrypoint …") may come after the first of the job's.
"""

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psutil
import pytest
from ray_head import kill, ray_head

from cluster.component import free_ports
from cluster.jobs import eventually
from trainjob import local_ray, submitter

SECONDS = 300


@dataclass
class Head:
    """The address and token of a head."""

    ports: list[int] = field(default_factory=lambda: free_ports(3))
    token: str = field(default_factory=lambda: secrets.token_hex(22))
    process: psutil.Process | None = None

    def submitter(self, job: str, command: str, token: str = "") -> "subprocess.Popen[str]":
        given = {
            "RAY_DASHBOARD_ADDRESS": f"127.0.0.1:{self.ports[1]}",
            "RAY_JOB_SUBMISSION_ID": job,
            "RAY_AUTH_TOKEN": token or self.token,
        }
        return subprocess.Popen(
            [sys.executable, "-m", submitter.__name__, command],
            env=os.environ | given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def submitted(self, job: str, command: str, token: str = "") -> tuple[int, str]:
        """The exit status of a submitter, and what it has printed."""
        process = self.submitter(job, command, token)
        printed = process.communicate(timeout=SECONDS)[0]
        return process.returncode, printed


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Generator[Head]:
    """A head that came later than its first submitter."""
    found = Head()
    port, dashboard, agent = found.ports
    options = [f"--port={port}", "--num-cpus=0", "--include-log-monitor=false", f"--dashboard-port={dashboard}"]
    options += [f"--dashboard-agent-listen-port={agent}", "--include-dashboard=true"]
    environment = os.environ | local_ray.ENVIRONMENT | {"RAY_AUTH_TOKEN": found.token}
    early = found.submitter("early", "echo at last")
    assert early.stdout is not None
    assert early.stdout.readline().startswith("waits for the head: ")
    with ray_head(options, environment, tmp_path_factory.mktemp("ray") / "log") as found.process:
        printed = early.communicate(timeout=SECONDS)[0]
        assert "at last\n" in printed
        assert printed.endswith("job early: SUCCEEDED\n")
        yield found


def test_another_submitter_follows_the_job_that_there_is(head: Head, tmp_path: Path):
    command = f"echo once >> {tmp_path}/runs; echo begins; until test -e {tmp_path}/go; do sleep 0.1; done; echo ends"
    first = head.submitter("twice", command)
    eventually((tmp_path / "runs").exists, SECONDS)
    first.terminate()
    first.communicate()
    assert first.returncode == 143
    second = head.submitter("twice", command)
    assert second.stdout is not None
    eventually(lambda: second.stdout and second.stdout.readline() == "begins\n", SECONDS)
    (tmp_path / "go").touch()
    printed = second.communicate(timeout=SECONDS)[0]
    assert "begins\n" not in printed
    assert printed.endswith("ends\njob twice: SUCCEEDED\n")
    assert second.returncode == 0
    assert (tmp_path / "runs").read_text() == "once\n"


@pytest.mark.nightly
def test_a_log_may_be_quiet_for_long(head: Head, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(submitter, "QUIET_SECONDS", 0.1)
    asyncio.run(submitter.run(f"127.0.0.1:{head.ports[1]}", head.token, "quiet", "echo begins; sleep 5; echo ends"))
    printed = capsys.readouterr().out
    assert "begins\n" in printed
    assert printed.endswith("ends\njob quiet: SUCCEEDED\n")


def test_that_a_job_has_failed_is_no_failure_of_the_submitter(head: Head):
    code, printed = head.submitted("failing", "echo no such file; exit 3")
    assert code == 0
    assert "no such file\n" in printed
    assert printed.endswith("job failing: FAILED\n")


def test_what_follows_a_line_that_ends_rays_log_is_printed(head: Head):
    code, printed = head.submitted("long", r"sleep 2; head -c 5000000 /dev/zero | tr '\0' x; echo; echo ends")
    assert code == 0
    assert printed.endswith(f"{'x' * 5_000_000}\nends\njob long: SUCCEEDED\n")


@pytest.mark.nightly
def test_that_ray_cannot_read_a_log_is_said(head: Head):
    code, printed = head.submitted("bytes", r"echo begins; sleep 2; printf '\377\n'; echo ends")
    assert code == 0
    assert "\nRay does not give the end of the log: 500 " in printed
    assert printed.endswith("\njob bytes: SUCCEEDED\n")


def test_the_end_of_a_job_is_known_though_its_head_goes_then(capsys: pytest.CaptureFixture[str]):
    class Ended(submitter.SubmittedJobs):
        async def follow(self, job: str, printed: int) -> int:
            return printed

        async def status(self, job: str) -> str | None:
            return "SUCCEEDED"

    async def follow() -> str:
        (port,) = free_ports(1)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as nobody:
            return await submitter.end_of(Ended(nobody), "job")

    assert asyncio.run(follow()) == "SUCCEEDED"
    assert capsys.readouterr().out.startswith("Ray does not give the end of the log: Cannot connect to host ")


def test_a_token_that_is_refused_is_said_at_once(head: Head):
    code, printed = head.submitted("refused", "true", token="x" * 44)
    assert code == 1
    assert printed.count("\n") == 1
    assert f":{head.ports[1]}/api/jobs/refused: 40" in printed


def test_a_head_that_is_lost_ends_it(head: Head):
    process = head.submitter("lost", "echo begins; sleep 300")
    assert process.stdout is not None
    eventually(lambda: process.stdout and process.stdout.readline() == "begins\n", SECONDS)
    assert head.process is not None
    kill(head.process)
    printed = process.communicate(timeout=SECONDS)[0]
    assert process.returncode == 1
    assert "Traceback" not in printed
    assert "head" in printed.splitlines()[-1]
