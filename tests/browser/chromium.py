"""A browser without a window, which says how a page is laid out."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.support.wait import WebDriverWait

FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PROBE = (Path(__file__).parent / "probe.js").read_text()
SECONDS = 60
ASK = """
const areas = [...document.querySelectorAll("textarea")];
areas.forEach((area, index) => { area.value = arguments[0][index]; });
document.querySelector("button").click();
"""
LINES = """
if (document.querySelector("button").disabled) return null;
return [...document.querySelectorAll("#answer tbody tr")].map(row => [...row.cells].map(cell => cell.textContent));
"""


class Browser:
    def __init__(self, driver: Chrome) -> None:
        self._driver, self._is_phone = driver, False

    def open(self, page: Path, width: int) -> None:
        """Shows the file `page` in a window `width` pixels wide."""
        self.visit(page.as_uri(), width)

    def faults(self) -> list[str]:
        """Describes each part of the open page that cannot be read, in one sentence each."""
        return self._driver.execute_script(PROBE)

    def visit(self, address: str, width: int = 1280) -> None:
        self._is_phone = width < 600
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": self._is_phone}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self._driver.get(address)

    def text_of(self, name: str) -> str:
        """The text of the open page's element with this id."""
        return self._driver.execute_script("return document.getElementById(arguments[0]).textContent", name)

    def ask(self, *cells: str) -> list[list[str]]:
        """The lines of the answer to these cells on the open page of `trainjob serve`."""
        self._driver.execute_script(ASK, cells)
        WebDriverWait(self._driver, SECONDS).until(lambda driver: driver.execute_script(LINES) is not None)
        return self._driver.execute_script(LINES)

    def screenshot(self, image: Path) -> None:
        """Writes the page, whole, to the PNG file `image`."""
        size: dict[str, Any] = self._driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        metrics = {"width": 0, "height": size["height"], "deviceScaleFactor": 1, "mobile": self._is_phone}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self._driver.save_screenshot(str(image))


@contextmanager
def browser() -> Generator[Browser]:
    """Chrome or Chromium, whichever the machine's chromedriver finds. Ended with the context."""
    driver = shutil.which("chromedriver")
    if driver is None:
        raise FileNotFoundError(
            "these tests need Chrome or Chromium and chromedriver: on Debian, apt-get install chromium chromium-driver"
        )
    options = ChromeOptions()
    with TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else [])):
            options.add_argument(flag)
        running = Chrome(options, ChromeService(driver))
        try:
            yield Browser(running)
        finally:
            running.quit()
