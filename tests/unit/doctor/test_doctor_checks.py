"""What the checks find in objects of a cluster, and how a finding is shown."""

import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainjob.api.storage import Storage
from trainjob.cli.doctor import finding_lines
from trainjob.cluster.errors import ClusterUnreachable
from trainjob.cluster.kubeconfig import connect
from trainjob.doctor import examination
from trainjob.doctor.components import missing_fields, numbers
from trainjob.doctor.findings import Finding, ok, wrong
from trainjob.doctor.nodes import node_findings
from trainjob.doctor.permissions import OPERATOR
from trainjob.doctor.probe import STORAGE_FAILED, WRITE_AND_READ, outcome
from trainjob.doctor.queues import integration
from trainjob_operator.settings import NodePool

HELPERS = Path(__file__).parents[3] / "charts" / "trainjob" / "templates" / "_helpers.tpl"
TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "present"}


def node(
    ready: str = "True", gpus: int = 0, taints: list[dict[str, str]] | None = None, **labels: str
) -> dict[str, Any]:
    allocatable = {"cpu": "4", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    status = {"conditions": [{"type": "Ready", "status": ready}], "allocatable": allocatable}
    return {"metadata": {"labels": labels}, "spec": {"taints": taints} if taints else {}, "status": status}


def pool(**fields: Any) -> NodePool:
    return NodePool.model_validate({"nodeSelector": {"pool": "a100"}, **fields})


def found(nodes: list[dict[str, Any]], **pools: NodePool) -> list[tuple[str, str]]:
    return [(each.state, each.message) for each in node_findings(nodes, pools)]


def test_nodes_that_take_no_pods_do_not_count():
    cordoned = node() | {"spec": {"unschedulable": True}}
    assert found([node(), node("False"), node("Unknown"), cordoned]) == [("ok", "1 of 4 ready; no GPUs")]
    assert found([node("False")])[0][0] == "wrong"
    assert found([{"metadata": {}, "status": {}}]) == [("wrong", "0 of 1 ready; no GPUs")]
    assert found([node(gpus=4), node(gpus=4, taints=[TAINT])]) == [
        ("ok", "2 of 2 ready; 8 nvidia.com/gpu on 2 nodes (taints: nvidia.com/gpu)")
    ]


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "value": "present"},
        {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present"},
    ],
)
def test_a_pool_tolerates_the_taints_of_its_nodes(toleration: Mapping[str, str]):
    nodes = [node(gpus=8, taints=[TAINT], pool="a100"), node(pool="other")]
    assert found(nodes, a100=pool(tolerations=[toleration]))[1] == (
        "ok",
        "1 ready; 8 nvidia.com/gpu on 1 node (taints: nvidia.com/gpu)",
    )


def test_a_pool_that_gets_no_pods_or_no_gpus():
    tainted = [node(gpus=8, taints=[TAINT], pool="a100")]
    for tolerations in ([], [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}], [{"key": "x"}]):
        assert found(tainted, a100=pool(tolerations=tolerations))[1] == (
            "wrong",
            "its nodes have taints that it does not tolerate: nvidia.com/gpu:NoSchedule",
        )
    soft = [node(gpus=1, taints=[TAINT | {"effect": "PreferNoSchedule"}], pool="a100")]
    assert found(soft, a100=pool())[1][0] == "ok"
    assert found([node()], a100=pool())[1] == (
        "unknown",
        "no node has its labels pool=a100 now; an autoscaler may add one",
    )
    assert found([node(pool="a100")], a100=pool())[1] == ("unknown", "1 node without nvidia.com/gpu")


def test_fields_that_another_crd_lacks_are_named():
    own = {
        "properties": {"a": {"properties": {"b": {}, "c": {}}}, "list": {"items": {"properties": {"d": {}}}}, "e": {}}
    }
    other = {"properties": {"a": {"properties": {"b": {}}}, "list": {"items": {"properties": {}}}, "more": {}}}
    assert list(missing_fields(own, other, "spec")) == ["spec.a.c", "spec.list[].d", "spec.e"]
    assert list(missing_fields(own, own, "spec")) == []


def test_versions_are_compared_by_number():
    assert numbers("v1.30.2-eks-1a") == (1, 30, 2)
    assert numbers("1.9+") < (1, 30) < numbers("1.100")
    assert numbers("nightly") == numbers("sha-1") == ()


def test_kueue_without_rayjobs():
    config = "apiVersion: config.kueue.x-k8s.io/v1beta2\nintegrations:\n  frameworks: [batch/job{}]\n"
    assert integration(config.format(", ray.io/rayjob")).state == "ok"
    for other in (config.format(""), "integrations:\n", "", "text"):
        assert integration(other).state == "wrong"
    assert integration("a: b: c").state == "unknown"


def test_the_operators_rules_are_the_charts():
    text = re.search(r'define "trainjob.rules" -}}\n(.*?){{- (?:with|end)', HELPERS.read_text(), re.DOTALL)
    assert text is not None
    assert [
        (rule["apiGroups"][0], rule["resources"][0], tuple(rule["verbs"])) for rule in yaml.safe_load(text[1])
    ] == OPERATOR


def tried(uri: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", WRITE_AND_READ, uri, ""], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


def test_the_pods_program_leaves_nothing_in_the_storage(tmp_path: Path):
    assert tried(str(tmp_path / "runs")) == (0, "")
    assert list((tmp_path / "runs").iterdir()) == []
    assert tried("") == (0, "")
    (tmp_path / "file").write_text("")
    code, said = tried(str(tmp_path / "file"))
    assert (code, said.count("\n"), "file" in said) == (STORAGE_FAILED, 1, True), said


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (
            {"terminated": {"exitCode": 0}},
            [("image", "ok", "a pod runs with image"), ("storage", "ok", "s3://runs: a pod")],
        ),
        (
            {"terminated": {"exitCode": STORAGE_FAILED, "message": "retries\ns3://runs: no such bucket\n"}},
            [("image", "ok", "a pod runs"), ("storage", "wrong", "s3://runs: no such bucket")],
        ),
        (
            {"terminated": {"exitCode": 1, "message": "ModuleNotFoundError: No module named 'trainjob'"}},
            [
                (
                    "image",
                    "wrong",
                    "image cannot run a job: ModuleNotFoundError: No module named 'trainjob' (exit code 1)",
                )
            ],
        ),
        (
            {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            [("image", "wrong", "image cannot run a job: OOMKilled (exit code 137)")],
        ),
        ({"running": {}}, [("image", "ok", "a pod"), ("storage", "wrong", "s3://runs: no answer when the time was")]),
    ],
)
def test_how_the_pod_has_ended(state: dict[str, Any], said: list[tuple[str, str, str]]):
    pod = {"status": {"phase": "Running", "containerStatuses": [{"name": "doctor", "state": state}]}}
    results = list(outcome("image", Storage(uri="s3://runs"), pod, None))
    assert [(each.check, each.state) for each in results] == [(check, state) for check, state, _ in said]
    assert all(each.message.startswith(text) for each, (_, _, text) in zip(results, said, strict=True)), results
    without_storage = list(outcome("image", None, pod, None))
    assert [each.check for each in without_storage] == ["image"]


def test_a_pod_that_does_not_start_says_why():
    pulled = outcome("image", None, {"status": {"phase": "Pending"}}, ("ImagePullBackOff", "not found"))
    assert [each[:3] for each in pulled] == [("image", "wrong", "image: ImagePullBackOff: not found")]
    full = outcome("image", None, {"status": {"phase": "Pending"}}, ("Unschedulable", "0/3 nodes"))
    assert [each[:3] for each in full] == [("pod", "wrong", "image: Unschedulable: 0/3 nodes")]


def test_a_finding_fits_the_terminal_and_its_remedy_can_be_copied():
    command = "kubectl create rolebinding trainjob-users --clusterrole=edit --user=USER -n a-namespace-with-a-long-name"
    lines = finding_lines(wrong("permissions", "you may not\ncreate " + "trainjobs " * 12, command), 60)
    assert all(len(line) <= 60 for line in lines[:-1])
    assert (lines[0][:15], lines[1][:4], lines[-1]) == ("✗ permissions: ", "    ", f"    → {command}")
    assert finding_lines(ok("server", "v1"), 3) == ["✓ server: v1"]
    assert finding_lines(Finding("a", "unknown", ""), 80)[0][0] == "\N{EN DASH}"


def test_a_server_that_never_answers_is_said_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "dead", "cluster": {"server": server}}],
            "contexts": [{"name": "dead", "context": {"cluster": "dead", "user": ""}}],
            "current-context": "dead",
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        monkeypatch.setattr(examination, "_LIMIT_SECONDS", 0.3)
        with pytest.raises(ClusterUnreachable, match=f"the API server {server} does not answer within 0 s"):
            next(examination.examine(connect(), None, None, 1, print))
