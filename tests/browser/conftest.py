from collections.abc import Generator

import pytest
from chromium import Browser, browser


@pytest.fixture(scope="module")
def chromium() -> Generator[Browser]:
    with browser() as running:
        yield running
