"""Downloads are pinned by their digests."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


def locked() -> dict[str, str]:
    """The entries of `locked.txt`, by package and version."""
    text = (ROOT / "locked.txt").read_text()
    return {pins(block).pop(): block for block in re.split(r"\n(?=\S)", text)}


def pins(text: str) -> set[str]:
    """`name==version` of each package in the text, names spelled as the index does."""
    return {f"{re.sub('[-_.]+', '-', name).lower()}=={version}" for name, version in PIN.findall(text)}


def test_every_version_has_digests():
    assert pins((ROOT / "constraints.txt").read_text()) == set(locked()), "run `make lock`"
    for name, block in locked().items():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), name


def test_what_builds_the_package_is_among_them():
    assert "hatchling" in {name.partition("==")[0] for name in locked()}


def test_base_images_have_digests():
    bases = re.findall(r"^ARG BASE_IMAGE=(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    stages = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert [re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", base) is not None for base in bases] == [True]
    assert set(stages) <= {"${BASE_IMAGE}", "base", "requirements"}


def test_images_are_of_no_platform():
    """`make platforms` asks whether there are packages for each that a release has."""
    text = (ROOT / "Dockerfile").read_text()
    assert not re.search(r"amd64|x86|arm64|aarch64|--platform", text)
    [python] = re.findall(r"^ARG BASE_IMAGE=python:(\d+\.\d+)-", text, re.MULTILINE)
    [command] = re.findall(r"^platforms:.*?\n\n", (ROOT / "Makefile").read_text(), re.MULTILINE | re.DOTALL)
    assert f"--python-version {python} " in command
    [built] = re.findall(r"platforms: (.*)", (ROOT / ".github" / "workflows" / "release.yaml").read_text())
    assert built == "linux/amd64,linux/arm64"


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_named_by_commit_with_their_version(file: Path):
    used = re.findall(r"^[ -]*uses: (.*)$", file.read_text(), re.MULTILINE)
    assert used
    for action in used:
        assert re.fullmatch(r"\./.*|[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_may_only_read_unless_a_job_says_more(file: Path):
    workflow = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        more = {scope for scope, right in job.get("permissions", {}).items() if right == "write"}
        assert not more or file.name == "release.yaml", name
