"""Runs that earlier versions wrote: their models answer as they did, and what was not finished is resumed.

`tests/earlier_runs/make.py` makes them.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from training_runs import Run
from typer.testing import CliRunner

from earlier_runs.make import DATASETS, ROWS
from earlier_runs.unpack import ARCHIVES, unpacked
from environment import environment_kept
from trainjob.cli.app import app
from trainjob.errors import Notice

RESULTS = ("model", "predictions", "summary.json", "evaluation.json", "baselines.json")
NUMBER = re.compile(r"\d+\.\d+")
ids = [archive.name.partition(".")[0] for archive in ARCHIVES]


@pytest.fixture(scope="module", params=ARCHIVES, ids=ids)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(request.param, tmp_path_factory.mktemp("earlier"))


def trainjob(*arguments: str) -> str:
    with environment_kept():
        done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def assert_close(found: Any, known: Any, rel: float = 1e-3) -> None:
    """Checks that everything known is there, with the same numbers but for another CPU's rounding."""
    if isinstance(known, dict):
        for name in known:
            assert_close(found[name], known[name], rel)
    elif isinstance(known, list):
        assert len(found) == len(known)
        for one, other in zip(found, known, strict=True):
            assert_close(one, other, rel)
    else:
        assert found == (pytest.approx(known, rel=rel) if isinstance(known, float) else known)


@pytest.mark.parametrize("kind", DATASETS)
def test_the_scores_are_the_same(folder: Path, kind: str) -> None:
    rows = str(folder / DATASETS[kind]["train"]["uri"])
    with pytest.warns(Notice, match="has the rows that the model was trained on"):
        printed = trainjob("evaluate", str(folder / "runs" / kind.lower()), rows, "--json")
    known = json.loads((folder / "scores" / f"{kind}.json").read_text())
    assert_close(json.loads(printed), known, rel=5e-3)  # evaluate computed in float32 then, and not as the run, in bf16


@pytest.mark.parametrize("kind", DATASETS)
def test_the_predictions_are_the_same(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    printed, known = trainjob("predict", f"runs/{kind.lower()}", *ROWS[kind]), folder / "predictions" / f"{kind}.txt"
    before = re.sub(" +$", "", known.read_text(), flags=re.MULTILINE)  # titles were as wide as their tables
    assert NUMBER.sub("0", printed) == NUMBER.sub("0", before)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (printed, before)]
    assert numbers[0] == pytest.approx(numbers[1], abs=2e-3)


@pytest.mark.parametrize("kind", DATASETS)
@pytest.mark.parametrize("archive", ARCHIVES, ids=ids)
def test_a_stopped_run_is_resumed(tmp_path: Path, archive: Path, kind: str) -> None:
    """The run is as it was after the second of its three epochs."""
    folder = unpacked(archive, tmp_path)
    run = Run(folder / f"{kind}.yaml", folder / "runs" / kind.lower())
    known = json.loads((run.folder / "evaluation.json").read_text())
    for name in RESULTS:
        if (run.folder / name).is_dir():
            shutil.rmtree(run.folder / name)
        else:
            (run.folder / name).unlink(missing_ok=True)
    (last,) = run.folder.glob("checkpoints/epoch-0003-*")
    shutil.rmtree(last)
    assert "continues from epoch-0002" in run.finish().stdout
    assert_close(json.loads((run.folder / "evaluation.json").read_text()), known)


def test_a_finished_function_stays_finished(folder: Path) -> None:
    assert "finished" in Run(folder / "function.yaml", folder / "runs" / "function").again()
