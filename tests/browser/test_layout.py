"""Everything on a report can be read, on a desk and on a phone."""

from pathlib import Path

import pytest
from chromium import Browser
from sample_reports import REPORTS


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", REPORTS)
def test_no_word_is_broken_or_cut_off(chromium: Browser, tmp_path: Path, name: str, width: int) -> None:
    page = tmp_path / "report.html"
    page.write_text(REPORTS[name](tmp_path))
    chromium.open(page, width)
    assert chromium.faults() == []


def test_the_probe_finds_what_cannot_be_read(chromium: Browser, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<table id=narrow style='width:3em; table-layout:fixed; overflow-wrap:anywhere'><td>unbreakable</table>"
        "<table id=fixed style='width:3em; table-layout:fixed'><td>unbreakable</table>"
        "<p id=hidden style='overflow:hidden; width:3em'>unbreakable</p>"
        "<p id=wide style='white-space:nowrap'>" + "word " * 300 + "end</p>"
        "<img id=image src='data:image/jpeg;base64,/9j/'>"
        "<div id=box style='overflow-x:auto; width:3em'>scrollable</div>"
    )
    chromium.open(page, 390)
    found = chromium.faults()
    assert 'broken between letters: "unbreakable" in <td> of narrow' in found
    assert 'wider than its cell: "unbreakable" in <td> of fixed' in found
    assert 'cut off: "unbreakable" in <p> of hidden' in found
    assert 'beyond the window: "end" in <p> of wide' in found
    assert 'not shown: "data:image/jpeg;base" in <img> of image' in found
    assert "the page scrolls sideways" in found
    assert not any("of box" in each for each in found)
