"""The pages name what there is: links, files and make's targets."""

import re
from pathlib import Path

import pytest
import yaml

from pages import trainjob_of

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/*.md"), *ROOT.glob("tests/*.md")])
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]*)(?:#([^)]+))?\)")
CODE = re.compile(r"`([^`]+)`")
TARGET = re.compile(r"^([a-z0-9-]+):", re.MULTILINE)
MAKE = re.compile(r"\bmake ([a-z0-9-]+)")
FOLDERS = "benchmarks|charts|docs|examples|hack|manifests|operator|tests"
FILE = re.compile(rf"(?<![\w./-])((?:{FOLDERS})/[\w./-]*\w|trainjob/[\w/-]+\.py)")


def anchors(page: Path) -> set[str]:
    """GitHub's anchors of a page's headings."""
    text = FENCED.sub("", page.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@EVERY_PAGE
def test_links_lead_somewhere(page: Path):
    for path, anchor in LINK.findall(FENCED.sub("", page.read_text())):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def commands(page: Path) -> str:
    """The code in a page."""
    text = page.read_text()
    return "\n".join([*FENCED.findall(text), *CODE.findall(FENCED.sub("", text))])


@EVERY_PAGE
def test_commands_name_files_and_targets_that_there_are(page: Path):
    said, targets = commands(page), set(TARGET.findall((ROOT / "Makefile").read_text()))
    assert set(MAKE.findall(said)) <= targets
    assert [path for path in FILE.findall(said) if not (ROOT / path).exists()] == []


AMBIGUOUS = re.compile(r"kubectl (?!trainjob )[^`\n]*?(?<=[ ,])trainjobs?(?=[ ,/`\n]|$)[^`\n]*")
"""A command that Kubeflow's TrainJobs would answer where both are installed."""


def test_commands_tell_trainjobs_from_kubeflows():
    texts = [*PAGES, *ROOT.glob("charts/**/*.txt"), *ROOT.glob("trainjob/**/*.py"), *ROOT.glob("operator/**/*.py")]
    assert [found for path in texts for found in AMBIGUOUS.findall(path.read_text())] == []
    assert AMBIGUOUS.findall("kubectl wait --for=condition=Complete trainjob/x") != []


def test_readme_and_the_quickstart_show_one_trainjob():
    first, second = (yaml.safe_load(trainjob_of(page, "data")) for page in ("README.md", "docs/quickstart.md"))
    assert first == second


def tree() -> set[str]:
    """The paths in the tree of the repository, in docs/architecture.md."""
    [lines] = re.findall(
        r"^```tree\n(.*?)^```", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE | re.DOTALL
    )
    paths: list[str] = []
    folders: list[str] = []
    for indent, name in re.findall(r"^( *)(\S+)", lines, re.MULTILINE):
        folders[len(indent) // 2 :] = [name]
        paths.append("".join(folders))
    return set(paths)


def test_the_tree_names_what_exists_and_every_package():
    packages = {
        f"{folder.relative_to(ROOT)}/"
        for parent in ("trainjob", "operator", "hack", "tests")
        for folder in (ROOT / parent).iterdir()
        if any(folder.rglob("*.py"))
    }
    assert packages <= tree()
    for path in tree():
        assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file(), path


def test_the_pages_have_commands_and_links():
    said = "".join(map(commands, PAGES))
    assert {"demo", "kind", "test"} <= set(MAKE.findall(said))
    assert "manifests/examples/quickstart.yaml" in FILE.findall(said)
    assert ("operator.md", "what-it-may-do") in LINK.findall((ROOT / "docs" / "chart.md").read_text())
