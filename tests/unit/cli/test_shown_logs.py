"""`trainjob logs` of a run's folder, and how the driver's log is read on after the connection broke off."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trainjob.cli.app import app
from trainjob.cluster.driver_log import LogPosition, split_time


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "tags"
    for attempt, rank, text in (
        (1, 0, "old\n"),
        (2, 0, "loss 0.5\n 10%\r 90%\r100%\n\x1b[31mred\x1b[0m\nno end\x07"),
        (2, 1, "loss 0.7\n"),
    ):
        logs = folder / "logs" / f"attempt-{attempt}"
        logs.mkdir(parents=True, exist_ok=True)
        (logs / f"rank-{rank}.log").write_text(text)
    (folder / "attempts.json").write_text("{}")
    return folder


def logs(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["logs", *map(str, arguments)])


def test_rank_0_of_the_latest_attempt_is_shown(run: Path):
    result = logs(run)
    assert result.exit_code == 0
    assert result.stdout == "loss 0.5\n100%\nred\nno end\\x07\n"
    assert logs(run, "--attempt", 1).stdout == "old\n"


def test_all_ranks_are_told_apart_and_lines_are_chosen(run: Path):
    assert logs(run, "--rank", "all", "--grep", "loss").stdout == "[rank 0] loss 0.5\n[rank 1] loss 0.7\n"
    assert logs(run, "--rank", "1", "--grep", "0.[12]").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rank", "7"], "has no log of rank 7; it has logs of ranks 0, 1"),
        (["--attempt", "9"], "has no logs of attempt 9: attempts with logs: 1, 2"),
    ],
)
def test_what_is_not_there_is_named(run: Path, arguments: list[str], said: str):
    assert said in str(logs(run, *arguments).exception)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rank", "-1"],
        ["--rank", "first"],
        ["--grep", "("],
        ["--since", "5m"],
        ["--driver"],
        ["--driver", "--rank", "1"],
        ["--attempt", "0"],
    ],
)
def test_wrong_usage_is_refused(run: Path, arguments: list[str]):
    result = logs(run, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path):
    assert "is not a run's folder" in str(logs(f"{tmp_path}/none").exception)


def test_a_run_that_printed_nothing_says_so(tmp_path: Path):
    (tmp_path / "attempts.json").write_text("{}")
    result = logs(tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{tmp_path}: no worker has printed anything\n"


@pytest.mark.parametrize("zone", ["Z", "+02:00", "-03:30"])
def test_a_log_that_is_read_on_has_each_line_once(zone: str):
    times = ["05", "05", "05.1", "05.12", "05.12", "05.123456789", "06"]
    lines = [(f"2026-01-02T03:04:{time}{zone}", number) for number, time in enumerate(times)]
    for broken in range(len(lines) + 1):
        position, read = LogPosition(), []
        for some in (lines[:broken], lines):
            position.begin()
            read += [number for stamp, number in some if position.is_new(stamp)]
        assert read == list(range(len(lines))), broken
        assert position.time == f"2026-01-02T03:04:06{zone}"


def test_a_kubelets_error_is_not_a_line_of_the_log():
    assert split_time(b"2026-11-28T17:20:50.123456789Z unable to") == ("2026-11-28T17:20:50.123456789Z", b"unable to")
    assert split_time(b"2026-11-28T17:20:50Z ") == ("2026-11-28T17:20:50Z", b"")
    assert split_time(b"unable to retrieve container logs for containerd://bd2c92013d10") is None


def test_a_run_is_followed_line_by_line_through_all_attempts(run: Path):
    """Each line is read before the next is written. The end of an attempt and the next attempts come at once."""
    command = [sys.executable, "-m", "trainjob", "logs", str(run), "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        output = iter(process.stdout or ())

        def read(count: int) -> list[str]:
            return [next(output) for _ in range(count)]

        assert read(3) == ["loss 0.5\n", "100%\n", "red\n"]
        with (run / "logs" / "attempt-2" / "rank-0.log").open("a") as log:
            for number in range(3):
                log.write(f" {number}\n")
                log.flush()
                assert read(1)[0].endswith(f" {number}\n")
            log.write("last of 2\n")
        for attempt in (3, 4):
            logs = run / "logs" / f"attempt-{attempt}"
            logs.mkdir()
            (logs / "rank-0.log").write_text(f"all of {attempt}\n")
        assert read(3) == ["last of 2\n", "all of 3\n", "all of 4\n"]
        process.terminate()
        assert list(output) == []
