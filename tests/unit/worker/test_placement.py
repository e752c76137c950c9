"""How a model is placed on the workers."""

import warnings
from pathlib import Path

from ranks import run_on
from trainers import Setup, build_trainer, image_setup


def future_warnings(setup: Setup) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        build_trainer(setup)
    return [str(each.message) for each in caught if issubclass(each.category, FutureWarning)]


def test_copies_are_made_without_options_that_pytorch_gives_up(tmp_path: Path) -> None:
    assert run_on(2, future_warnings, image_setup(tmp_path)) == [[], []]
