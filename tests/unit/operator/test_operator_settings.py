from pathlib import Path

import pytest

from trainjob.errors import UserError
from trainjob_operator.settings import load_settings

FULL = """
image: registry.example.com/trainjob:1.0
imagePullPolicy: Always
imagePullSecrets: [registry]
rayVersion: 2.60.0
nodePools:
  a100:
    nodeSelector: {gpu: a100}
    tolerations: [{key: nvidia.com/gpu, operator: Exists}]
    gpusPerNode: 8
    runtimeClassName: nvidia
  gaudi: {gpuResource: habana.ai/gaudi}
defaults: {head: {cpus: 2, memory: 8Gi}, workerMemory: 16Gi, startDeadline: 30m}
namespaces: [team-a, team-b]
"""


def test_a_file_with_every_kind_of_setting(tmp_path: Path):
    path = tmp_path / "settings.yaml"
    path.write_text(FULL)
    settings = load_settings(path)
    assert settings.image == "registry.example.com/trainjob:1.0"
    assert settings.node_pools["a100"].gpus_per_node == 8
    assert settings.node_pools["a100"].gpu_resource == "nvidia.com/gpu"
    assert settings.node_pools["gaudi"].gpu_resource == "habana.ai/gaudi"
    assert (settings.defaults.head.cpus, settings.defaults.data_cpus) == (2, 1)
    assert settings.namespaces == ["team-a", "team-b"]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["the file: "]),
        ("[1, 2]", ["the file: "]),
        ("{}", ["image: Field required"]),
        ("image: ''", ["image: "]),
        ("{image: i, imagePullPolicy: Sometimes}", ["imagePullPolicy: "]),
        ("{image: i, image_pull_policy: Always}", ["image_pull_policy: Extra inputs are not permitted"]),
        ("{image: i, nodePools: {a100: {gpusPerNode: 0}}}", ["nodePools.a100.gpusPerNode: "]),
        ("{image: i, nodePools: {a100: {tolerations: {}}}}", ["nodePools.a100.tolerations: "]),
        ("{image: i, nodePools: {a100: {pod: {volumes: [{emptyDir: {}}]}}}}", ["nodePools.a100.pod: "]),
        ("{image: i, nodePools: {a100: {pod: {volumes: 3}}}}", ["nodePools.a100.pod: "]),
        ("{image: i, nodePools: {A_100: {}}}", ["nodePools.A_100.[key]: "]),
        ("{image: i, defaults: {head: {cpus: 1}}}", ["defaults.head.memory: Field required"]),
        ("{image: i, defaults: {dataCpus: 0}}", ["defaults.dataCpus: "]),
        ("{image: i, defaults: {startDeadline: soon}}", ["defaults.startDeadline: "]),
        ("{image: i, defaults: {storage: {}}}", ["defaults.storage: set exactly one of"]),
        ("{image: i, defaults: {storage: {uri: runs}}}", ["defaults: Value error, storage runs must start with"]),
        ("{image: i, defaults: {namespaceStorage: {a: {uri: b}}}}", ["defaults: Value error, storage b must start"]),
        ("{image: i, namespaces: [ok, 'Not ok']}", ["namespaces.1: "]),
        ("{rayVersion: '2', pools: {}}", ["image: Field required", "rayVersion: ", "pools: Extra inputs"]),
    ],
)
def test_every_wrong_field_is_named_by_its_path(tmp_path: Path, text: str, problems: list[str]):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        load_settings(path)
    first, *lines = str(error.value).splitlines()
    assert first == f"{path}: the operator's settings are wrong:"
    assert len(lines) == len(problems)
    for line, problem in zip(lines, problems, strict=True):
        assert line.startswith(f"  {problem}")


@pytest.mark.parametrize("content", [b"image: [", b"a: b: c", b"\xff\xfe\xfa"])
def test_what_is_not_yaml_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "settings.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"settings\.yaml: is not YAML: "):
        load_settings(path)


def test_a_file_that_is_missing_or_a_folder_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match=r"missing\.yaml: No such file or directory"):
        load_settings(tmp_path / "missing.yaml")
    with pytest.raises(UserError, match="Is a directory"):
        load_settings(tmp_path)
