"""The chart as it is packed and published, and the workflow that does so."""

import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from releases import CHART, ROOT, HelmError, find, helm, render, settings_file

from servers.programs import program
from trainjob.api import TrainJob

DESCRIPTION = yaml.safe_load((CHART / "Chart.yaml").read_text())


def test_helm_has_nothing_to_say_of_it():
    said = helm("lint", "--strict", CHART)
    assert "0 chart(s) failed" in said
    assert not re.search(r"\[(INFO|WARNING|ERROR)\]", said), said


def test_the_package_has_what_readers_look_for(tmp_path: Path):
    helm("package", CHART, "--destination", tmp_path)
    with tarfile.open(tmp_path / f"trainjob-{DESCRIPTION['version']}.tgz") as package:
        names = set(package.getnames())
    assert {f"trainjob/{name}" for name in ("Chart.yaml", "README.md", "LICENSE", "values.schema.json")} <= names
    assert (CHART / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_its_trainjobs_are_valid():
    annotations = DESCRIPTION["annotations"]
    [example] = yaml.safe_load(annotations["artifacthub.io/crdsExamples"])
    [shown] = re.findall(r"```yaml\n(.*?)```", (CHART / "README.md").read_text(), re.DOTALL)
    assert TrainJob.model_validate(example) == TrainJob.model_validate(yaml.safe_load(shown))
    [definition] = yaml.safe_load(annotations["artifacthub.io/crds"])
    crd = yaml.safe_load((CHART / "files" / "crd.yaml").read_text())
    assert definition["name"] == crd["metadata"]["name"]
    assert definition["version"] in [version["name"] for version in crd["spec"]["versions"]]


def test_its_version_is_the_packages():
    version = re.findall(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version == [DESCRIPTION["version"]] == [DESCRIPTION["appVersion"]]


def test_both_images_are_in_the_registry():
    version = DESCRIPTION["appVersion"]
    objects = render({"registry": "registry.example/team"})
    [container] = find(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.example/team/trainjob-operator:{version}"
    image = yaml.safe_load(settings_file(objects))["image"]
    assert image == f"registry.example/team/trainjob-trainer:{version}"
    with pytest.raises(HelmError, match="registry"):
        render({"registry": "registry.example/team/"})


def test_the_workflows_are_sound():
    files = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
    assert "release.yaml" in {file.name for file in files}
    done = subprocess.run([program("actionlint"), *files], text=True, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "")
