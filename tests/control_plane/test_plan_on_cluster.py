"""`trainjob plan` with the nodes and quotas of a cluster."""

import json
from pathlib import Path
from typing import Any

import yaml
from commands import Command, Said
from operator_process import account

from cluster.client import Cluster
from cluster.jobs import Jobs, eventually

GPU = "nvidia.com/gpu"


def add_node(cluster: Cluster, name: str, gpus: int) -> None:
    labels = {"pool": name, f"{GPU}.memory": "81920"}
    taints = [{"key": GPU, "effect": "NoSchedule"}]
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}})
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110", GPU: str(gpus)}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.kubectl("patch", "node", name, "--subresource=status", "--patch", json.dumps({"status": status}))
    cluster.kubectl("patch", "node", name, "--type=merge", "--patch", json.dumps({"spec": {"taints": taints}}))


def write_job(folder: Path, **spec: Any) -> str:
    (folder / "rows.csv").write_text("text,label\n" + "".join(f"words {n},{'ab'[n % 2]}\n" for n in range(40)))
    document = {
        "apiVersion": "trainjob.dev/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tags"},
        "spec": {
            "model": {"textClassifier": {"encoder": {"layers": 1, "hiddenSize": 16, "heads": 2}, "maxLength": 16}},
            "dataset": {"train": {"uri": "rows.csv"}, "text": ["text"], "label": "label"},
            "storage": {"uri": "s3://runs"},
            **spec,
        },
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(document))
    return str(folder / "job.yaml")


def planned(said: Said) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    assert said.out, said
    plan = json.loads(said.out)
    return plan, {each["check"]: (each["state"], each["message"]) for each in plan["cluster"]}


def test_a_plan_shows_what_nodes_and_quotas_have_now(jobs: Jobs, trainjob: Command, tmp_path: Path):
    name = f"gpus-{jobs.namespace}"
    pods: dict[str, Any] = {"nodeSelector": {"pool": name}, "tolerations": [{"key": GPU, "operator": "Exists"}]}
    workers = {"count": 2, "gpus": 1, "memory": "8Gi"}
    file = write_job(tmp_path, workers=workers, pods=pods)
    add_node(jobs.cluster, name, gpus=4)
    busy = {"name": "c", "image": "i", "resources": {"limits": {GPU: "2"}}}
    spec = {"containers": [busy], "nodeName": name, "tolerations": [{"operator": "Exists"}]}
    metadata = {"namespace": jobs.namespace}
    try:
        jobs.cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "busy", **metadata}, "spec": spec})
        plan, found = planned(trainjob("plan", file, "--json"))
        assert plan["capacity"] == 80 * 2**30
        assert plan["fits"] == "yes"
        asks = "2 pods of 2 cpu, 8Gi memory, 1 nvidia.com/gpu"
        assert found["workers"] == ("ok", f"{asks}: fit now; 1 node takes them, with 2 of 4 {GPU} free")
        assert found["head"][0] == "ok"
        assert found["settings"][1].endswith("there is no operator; its defaults are assumed")

        hard = {"hard": {f"requests.{GPU}": "3"}}
        jobs.cluster.apply(
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", **metadata}, "spec": hard}
        )
        eventually(lambda: (jobs.get("resourcequotas", "team") or {}).get("status", {}).get("used"))
        _, found = planned(trainjob("plan", file, "--json", "--set", "spec.workers.count=4"))
        assert found["workers"] == (
            "wrong",
            f"4 pods of 2 cpu, 8Gi memory, 1 nvidia.com/gpu: room for 2 now; 1 node takes them, with 2 of 4 {GPU} free",
        )
        assert found["quota team"] == ("wrong", f"requests.{GPU} 2 of 3 used, needs 4")
        shown = trainjob("plan", file).out
        assert f"✗ quota team: requests.{GPU} 2 of 3 used, needs 2" in shown
    finally:
        jobs.cluster.kubectl("delete", "node", name)


def test_a_plan_says_what_the_user_may_not_see(jobs: Jobs, trainjob: Command, tmp_path: Path):
    file = write_job(tmp_path, workers={"count": 1, "gpus": 1})
    plan, found = planned(trainjob("plan", file, "--json", kubeconfig=account(jobs, tmp_path)))
    assert plan["capacity"] is None
    assert any("--gpu-memory 80Gi" in note for note in plan["notes"])
    for check in ("settings", "nodes", "quotas"):
        assert found[check][0] == "unknown"
        assert "you may not list" in found[check][1]
