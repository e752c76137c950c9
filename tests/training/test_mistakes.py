"""Mistakes of the user's end with exit code 2 and one message, whichever process finds them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_runs import Run

from nightly import at_night

NewRun = Callable[..., Run]

DIVERGES: dict[str, Any] = {
    "training.epochs": 1,
    "training.batchSize": 64,
    "training.optimizer": {"sgd": {"learningRate": 1.0e30}},
    "training.scheduler": {"constant": {}},
    "retries": 3,
}


@pytest.mark.parametrize("loader", ["dataLoader", at_night("rayData")])
def test_bad_rows_are_found_while_workers_start(
    new_run: NewRun, tmp_path: Path, loader: str, request: pytest.FixtureRequest
):
    if loader == "rayData":
        request.getfixturevalue("warm_ray")
    rows = tmp_path / "bad.csv"
    rows.write_text("title,body,label\na,b,red\na,b,purple\na,b,\n")
    message = new_run("text", {"dataset.loader": loader, "dataset.test": {"uri": str(rows)}}).refused()
    first, wrong, empty, advice = message.splitlines()
    assert first == f"spec.dataset.test ({rows}): 2 of 3 rows cannot be used"
    assert wrong.startswith(f'  {rows}, row 2: the label "purple" does not occur in the training rows')
    assert empty.startswith(f"  {rows}, row 3: the label")
    assert advice.endswith("`dataset.onBadRows: drop`.")


@pytest.mark.nightly
@pytest.mark.usefixtures("warm_ray")
def test_a_mistake_that_workers_on_ray_find_is_not_tried_again(new_run: NewRun):
    """For local workers, see tests/unit/launch/test_local.py."""
    run = new_run("image", DIVERGES | {"dataset.loader": "dataLoader", "workers.count": 1})
    message = run.refused()
    assert message.startswith("training diverged: the loss is nan at step")
    assert "learningRate" in message
    assert run.read("attempts.json")["failures"] == 0
