"""Settings that change while the operator runs."""

import asyncio
import logging
from pathlib import Path

import pytest

from trainjob_operator import settings_file
from trainjob_operator.metrics import SETTINGS_REFUSED
from trainjob_operator.settings import load_settings
from trainjob_operator.settings_file import wait_for_new_settings


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_file, "CHECK_SECONDS", 0.001)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text("image: trainjob:1")
    return path


def is_refused() -> bool:
    [sample] = next(iter(SETTINGS_REFUSED.collect())).samples
    return sample.value == 1


def test_other_settings_are_noticed_and_the_same_ones_are_not(file: Path):
    async def change() -> None:
        task = asyncio.create_task(wait_for_new_settings(file, load_settings(file)))
        file.write_text("image: 'trainjob:1'  # the same")
        _, waits = await asyncio.wait([task], timeout=0.2)
        assert waits
        file.write_text("image: trainjob:2")
        await asyncio.wait_for(task, 30)

    asyncio.run(change())


def replace(file: Path, text: str) -> None:
    """Replaces the file atomically, as the kubelet does: half a file would be another error."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


@pytest.mark.parametrize("text", ["imag: trainjob:2", "image: [", None])
def test_wrong_settings_are_told_once_and_do_not_count(file: Path, text: str | None, caplog: pytest.LogCaptureFixture):
    async def change() -> None:
        task = asyncio.create_task(wait_for_new_settings(file, load_settings(file)))
        file.unlink() if text is None else replace(file, text)
        async with asyncio.timeout(30):
            while not is_refused():
                await asyncio.sleep(0.001)
        _, waits = await asyncio.wait([task], timeout=0.2)
        assert waits
        replace(file, "image: trainjob:1")
        async with asyncio.timeout(30):
            while is_refused():
                await asyncio.sleep(0.001)
        task.cancel()

    with caplog.at_level(logging.ERROR):
        asyncio.run(change())
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the changed settings are invalid; the earlier ones stay in force"
    ]
