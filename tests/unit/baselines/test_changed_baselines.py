"""Baselines of a finished run that are asked for later."""

import re
import time
import warnings
from pathlib import Path

import pytest
import yaml
from baseline_runs import write_run
from typer.testing import CliRunner

from trainjob.api import TrainJob
from trainjob.cli.app import app
from trainjob.driver.run import Finished, run
from trainjob.errors import Notice
from trainjob.runs.contents import read_contents
from trainjob.runs.folder import read_job
from trainjob.storage import Folder


def finished(folder: Path, data: Path) -> tuple[TrainJob, Folder]:
    """A finished run without baselines."""
    job, run = write_run(folder, "text", data, baselines={}, storage={"uri": str(folder)})
    run.write("report.html", b"")
    return job, run


def again(job: TrainJob, **changes: object) -> tuple[Finished, list[str]]:
    """Runs a changed TrainJob; also returns the notices."""
    document = job.model_dump(by_alias=True, exclude_none=True)
    document["spec"] |= changes
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Notice)
        result = run(TrainJob.model_validate(document), source=Path(), started=time.time())
    return result, [str(each.message) for each in caught if issubclass(each.category, Notice)]


def test_a_run_computes_changed_baselines(tmp_path: Path, texts: Path) -> None:
    job, folder = finished(tmp_path, texts)
    result, said = again(job, baselines={"tfidf": {}})
    assert result.already
    assert result.comparison is not None
    assert [each.name for each in result.comparison.baselines] == ["tfidf"]
    assert said == ["spec.baselines has changed: computing tfidf"]
    assert read_contents(folder).comparison == result.comparison
    assert _spec(folder)["baselines"] == {"tfidf": {}}
    assert b"tfidf" in folder.read("report.html")
    _, said = again(read_job(folder))
    assert said == []
    result, said = again(job, baselines={})
    assert (result.comparison, said) == (None, ["spec.baselines has become empty"])
    assert not folder.exists("baselines.json")


def test_what_cannot_be_computed_any_more_is_said(tmp_path: Path, texts: Path) -> None:
    job, folder = finished(tmp_path, texts)
    folder.delete("predictions")
    result, said = again(job, baselines={"tfidf": {}}, retries=7, workers={"count": 4})
    assert result.comparison is None
    effectless = next(each for each in said if "have no effect" in each)
    assert re.search(r"spec\.retries, spec\.workers\.count$", effectless)
    assert any("the baselines could not be computed" in each for each in said)
    assert yaml.safe_load(folder.read("trainjob.yaml"))["spec"]["baselines"] == {}  # so that it is tried again


def test_the_command_takes_fields_of_baselines(tmp_path: Path, texts: Path) -> None:
    _, folder = finished(tmp_path, texts)
    result = CliRunner().invoke(app, ["baseline", folder.uri, "--set", "spec.baselines.tfidf={}"])
    assert result.exit_code == 0
    comparison = read_contents(folder).comparison
    assert comparison is not None
    assert [each.name for each in comparison.baselines] == ["tfidf"]
    assert _spec(folder)["baselines"] == {"tfidf": {}}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("spec.training.epochs=3", r"only fields of spec\.baselines can be set"),
        ("spec.baselinesx={}", r"only fields of spec\.baselines can be set"),
        ("spec.baselines.tfid={}", r"did you mean tfidf"),
    ],
)
def test_other_overrides_are_refused(tmp_path: Path, texts: Path, override: str, message: str) -> None:
    _, folder = finished(tmp_path, texts)
    before = folder.read("trainjob.yaml")
    result = CliRunner().invoke(app, ["baseline", folder.uri, "--set", override])
    assert re.search(message, str(result.exception))
    assert folder.read("trainjob.yaml") == before


def _spec(folder: Folder) -> dict[str, object]:
    return yaml.safe_load(folder.read("trainjob.yaml"))["spec"]
