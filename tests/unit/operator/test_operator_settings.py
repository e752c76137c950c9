import re
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
  mi300: {gpuResource: amd.com/gpu}
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
    assert settings.node_pools["mi300"].gpu_resource == "amd.com/gpu"
    assert (settings.defaults.head.cpus, settings.defaults.data_cpus) == (2, 1)
    assert settings.namespaces == ["team-a", "team-b"]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["expected a mapping"]),
        ("[1, 2]", ["expected a mapping"]),
        ("{}", ["image  is required"]),
        ("image: ''", ["image  must not be empty"]),
        ("{image: i, imagePullPolicy: Sometimes}", ["imagePullPolicy  must be Always, IfNotPresent or Never"]),
        ("{image: i, image_pull_policy: Always}", ["image_pull_policy  unknown field; did you mean imagePullPolicy?"]),
        ("{image: i, image: j}", ["image  is given twice"]),
        ("{image: i, gpusPerNode: 8}", ["gpusPerNode  unknown field here; did you mean nodePools.NAME.gpusPerNode?"]),
        ("{image: i, nodePools: {a100: {gpusPerNode: 0}}}", ["nodePools.a100.gpusPerNode  must be at least 1"]),
        ("{image: i, nodePools: {a100: {gpu: 1}}}", ["nodePools.a100.gpu  unknown field; "]),
        ("{image: i, nodePools: {a: {gpuResource: x.ai/g}}}", ["nodePools.a.gpuResource  must be text that matches"]),
        ("{image: i, nodePools: {a: {resources: {rdma: 1}}}}", ["nodePools.a.resources.rdma.[key]  must be"]),
        (
            "{image: i, nodePools: {a: {resources: {rdma/hca: 0}}}}",
            ["nodePools.a.resources.rdma/hca  must be at least"],
        ),
        ("{image: i, nodePools: {a: {resources: {nvidia.com/gpu: 1}}}}", ["nodePools.a.resources  nvidia.com/gpu is"]),
        ("{image: i, nodePools: {a: {env: {NCCL-DEBUG: x}}}}", ["nodePools.a.env.NCCL-DEBUG.[key]  must be"]),
        ("{image: i, nodePools: {a: {env: [{name: A, value: b}]}}}", ["nodePools.a.env  expected a mapping"]),
        ("{image: i, nodePools: {a: {capabilities: [cap_ipc]}}}", ["nodePools.a.capabilities[0]  must be"]),
        ("{image: i, nodePools: {a100: {tolerations: {}}}}", ["nodePools.a100.tolerations  expected a list"]),
        ("{image: i, nodePools: {A_100: {}}}", ["nodePools.A_100.[key]  must be lower-case letters"]),
        ("{image: i, nodePools: {a: {pod: {x: !!binary aGk=}}}}", ["nodePools.a.pod.x  the YAML tag !!binary is not"]),
        (
            "{image: i, nodePools: {a: {pod: {nodeSelector: {}}}}}",
            ["nodePools.a.pod.nodeSelector  cannot be set for a pool"],
        ),
        (
            "{image: i, nodePools: {a: {pod: {containers: []}}}}",
            ["nodePools.a.pod.containers  cannot be set for a pool"],
        ),
        ("{image: i, nodePools: {a: {pod: {securityContext: {}}}}}", ["nodePools.a.pod.securityContext  cannot"]),
        (
            "{image: i, nodePools: {a: {pod: {volumes: [{name: trainjob-tmp}]}}}}",
            ["nodePools.a.pod.volumes  trainjob,"],
        ),
        ("{image: i, defaults: {head: {cpus: 1}}}", ["defaults.head.memory  is required"]),
        ("{image: i, defaults: {dataCpus: 0}}", ["defaults.dataCpus  must be greater than 0"]),
        ("{image: i, defaults: {workerCpus: 1e308}}", ["defaults.workerCpus  must be less than 10000"]),
        ("{image: i, defaults: {startDeadline: soon}}", ["defaults.startDeadline  must be a number of seconds"]),
        ("{image: i, defaults: {storage: {}}}", ["defaults.storage  set exactly one of"]),
        ("{image: i, defaults: {storage: {uri: runs}}}", ["defaults.storage.uri  must start with"]),
        ("{image: i, defaults: {namespaceStorage: {a: {uri: b}}}}", ["defaults.namespaceStorage.a.uri  must start"]),
        ("{image: i, namespaces: [ok, 'Not ok']}", ["namespaces[1]  must be lower-case letters"]),
        ("{rayVersion: '2', pools: {}}", ["image  is required", "rayVersion  must be", "pools  unknown field"]),
        ("image: [", ["not valid YAML: "]),
        ("image: i\n---\nimage: j", ["a second YAML document; only one is expected"]),
    ],
)
def test_every_wrong_field_is_named_by_its_line_and_path(tmp_path: Path, text: str, problems: list[str]):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        load_settings(path)
    lines = str(error.value).splitlines()
    assert len(lines) == len(problems)
    for line, problem in zip(lines, problems, strict=True):
        assert re.match(rf"{path}:[13](:\d+)?  {re.escape(problem)}", line), line


@pytest.mark.parametrize(
    "volumes", ["3", "null", "[{emptyDir: {}}]", "[1]", "[name]", "[[name]]", "[{name: 1}]", "[{name: []}]"]
)
def test_volumes_of_a_pool_have_names(tmp_path: Path, volumes: str):
    path = tmp_path / "settings.yaml"
    path.write_text(f"{{image: i, nodePools: {{a100: {{pod: {{volumes: {volumes}}}}}}}}}")
    with pytest.raises(
        UserError, match=r":1  nodePools\.a100\.pod\.volumes  must be a list of volumes, each with a name"
    ):
        load_settings(path)


def test_a_taint_of_a_pool_has_a_name(tmp_path: Path):
    path = tmp_path / "settings.yaml"
    path.write_text("{image: i, nodePools: {a100: {tolerations: [{key: gpu}, {operator: Exists}, {key: [gpu]}]}}}")
    with pytest.raises(UserError, match=r":1  nodePools\.a100\.tolerations\.2\.key  must be the name of a taint"):
        load_settings(path)


def test_yaml_is_read_as_kubernetes_reads_it(tmp_path: Path):
    path = tmp_path / "settings.yaml"
    path.write_text(
        "{image: i, defaults: {workerCpus: 500m, workerMemory: 8e+09, labels: {since: 2026-01-01}, head: }}"
    )
    defaults = load_settings(path).defaults
    assert (defaults.worker_cpus, defaults.worker_memory) == (0.5, "8000000000")
    assert defaults.labels == {"since": "2026-01-01"}
    assert defaults.head.cpus == 1


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    (tmp_path / "settings.yaml").write_bytes(b"\xff\xfe\xfa")
    for name, problem in (
        ("settings.yaml", "is not UTF-8 text"),
        ("missing.yaml", "no such file"),
        ("", "is a folder"),
    ):
        with pytest.raises(UserError, match=rf"{name}  {problem}"):
            load_settings(tmp_path / name)
