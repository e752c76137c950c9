"""The training time of a function's attempts."""

import time
from pathlib import Path

from trainjob.driver.function import seconds_before
from trainjob.runs.attempts import begin_training, count_failure, read_attempts
from trainjob.storage import Folder


def test_training_time_is_the_sum_over_attempts_each_up_to_its_last_report() -> None:
    records = [{"time": each} for each in (105.0, 110.0, 204.0, 305.0)]
    assert seconds_before([100.0, 200.0, 300.0], records) == 10 + 4
    assert seconds_before([100.0, 150.0, 200.0], records) == 10 + 0  # the second reported nothing
    assert seconds_before([300.0], records) == 0


def test_attempts_keep_when_training_began(tmp_path: Path) -> None:
    """An earlier version kept no times."""
    run = Folder(str(tmp_path))
    run.write("attempts.json", b'{"started": "2026-01-01T00:00:00Z", "count": 2, "failures": 1}')
    attempts = read_attempts(run)
    assert attempts is not None
    assert attempts.training_since == []
    before = time.time()
    begin_training(run, attempts)
    assert count_failure(run) == 2
    kept = read_attempts(run)
    assert kept is not None
    assert before <= kept.training_since[0] <= time.time()
