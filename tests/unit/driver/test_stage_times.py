"""The duration of each stage."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trainjob.driver import built_in
from trainjob.driver.built_in import BuiltInTraining


def test_what_failed_workers_trained_is_no_part_of_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An hour lies between the failure's workers and those that take their place."""
    clock = iter([10.0, 3610.0])
    monkeypatch.setattr(built_in, "time", SimpleNamespace(time=lambda: next(clock)))

    def twice(work: Any) -> Any:
        work()
        return work()

    training = BuiltInTraining(*cast("Any", [None, None, 1, None, 1, twice, None]))
    training.run_with_retries(lambda: cast("Any", None))
    assert training.seconds_to_start(entered=3614.0, started=5.0) == 9.0
