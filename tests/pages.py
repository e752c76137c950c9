"""The TrainJobs that README and the quickstart show, as a user copies them from the page."""

import re
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[1]

_YAML = re.compile(r"^ *```yaml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_DATA = re.compile(r"(?<=train: \{uri: )[^}]+")


def yaml_of(page: str) -> list[str]:
    """Everything on a page that is YAML."""
    return [dedent(block) for block in _YAML.findall((ROOT / page).read_text())]


def trainjob_of(page: str, data: str) -> str:
    """The only TrainJob on a page, in YAML, with its data URI replaced."""
    (found,) = (block for block in yaml_of(page) if "kind: TrainJob" in block)
    text, changes = _DATA.subn(data, found)
    assert changes == 1, f"{page} has no data to change in its TrainJob"
    return text
