"""The operator under the chart's service account: it may do what it does, and nothing else."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from releases import NAMESPACE, OPERATOR, Object, Release, find, installed, render, signed_in, token

from cluster.component import ENDS_WITH_US, free_ports
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually
from trainjob.crd.definition import UNSEEN

Use = tuple[str, str]
"""A verb and the resource with its group, such as patch and ray.io/rayjobs."""

NOT_ASKED: set[Use] = {
    ("update", "trainjob.dev/trainjobs/finalizers"),  # what owner references need
    ("create", "ray.io/rayjobs"),  # what server-side apply needs, which is a patch, where it creates the object
    ("create", "networking.k8s.io/networkpolicies"),
    ("patch", "kueue.x-k8s.io/workloads"),  # there is no Kueue here: tests/control_plane/test_kueue.py has one
}
"""Rights that go with a request of another kind, or with one that is made elsewhere."""
LOOK: set[Use] = {
    (verb, f"trainjob.dev/{resource}")
    for verb in ("get", "list", "watch")
    for resource in ("trainjobs", "trainjobs/status")
}


@contextmanager
def running(release: Release, folder: Path) -> Generator[Path]:
    """The operator as the release's Deployment has it, under its service account; gives its log."""
    cluster, deployment = release.cluster, release.get("deployment")
    assert deployment is not None
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    (folder / "settings.yaml").write_text(yaml.safe_dump(release.settings()))
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    (folder / "kubeconfig").write_text(json.dumps(signed_in(cluster, token(cluster, NAMESPACE, account))))
    arguments = [argument.replace("/etc/trainjob-operator", str(folder)) for argument in container["args"]]
    program = Path(sys.executable).with_name(container["command"][0])
    command = [*ENDS_WITH_US, str(program), *container["command"][1:], *arguments, f"--port={free_ports(1)[0]}"]
    log = folder / "operator.log"
    with log.open("wb") as file:
        environment = os.environ | {"KUBECONFIG": str(folder / "kubeconfig")}
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
    try:
        yield log
    finally:
        process.terminate()
        assert process.wait(timeout=30) == 0, log.read_text()


def granted(rules: list[Object]) -> set[Use]:
    return {
        (verb, f"{group}/{resource}".lstrip("/"))
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


@dataclass
class Requests:
    """Records the operator's requests to the API server from now on."""

    cluster: ControlPlane

    def __post_init__(self) -> None:
        self._file = self.cluster.folder / "audit.log"
        self._before = self._file.stat().st_size if self._file.exists() else 0

    def of(self, *namespaces: str | None) -> Iterator[tuple[Use, int]]:
        """Each request about one of these namespaces, and the status that it got."""
        written, _, _ = self._file.read_bytes()[self._before :].rpartition(b"\n")  # the API server may be writing
        for line in written.splitlines():
            event = json.loads(line)
            target: dict[str, Any] = event.get("objectRef", {})
            if "resource" in target and target.get("namespace") in namespaces:
                path = [target.get("apiGroup"), target["resource"], target.get("subresource")]
                yield (event["verb"], "/".join(filter(None, path))), event["responseStatus"]["code"]


def live(jobs: Jobs, requests: Requests) -> None:
    """Jobs that make the operator do all that it can."""

    def asked(*uses: Use) -> bool:
        return set(uses) <= {use for use, _ in requests.of(jobs.namespace)}

    jobs.create("plain", workers={"count": 2})
    jobs.until("plain", phase="Pending", reason="PodsStarting")
    jobs.patch("trainjob", "plain", {"spec": {"retries": 1}})
    eventually(lambda: asked(("patch", "ray.io/rayjobs")))
    pods = eventually(lambda: jobs.cluster.find("pods", jobs.namespace))
    name = pods[0]["metadata"]["name"]
    target = {"kind": "Node", "name": "a-node"}  # with a node, a pod is on its way: its events tell more
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    jobs.cluster.create_raw(f"/api/v1/namespaces/{jobs.namespace}/pods/{name}/binding", binding)
    jobs.create("queued", {"labels": {"kueue.x-k8s.io/queue-name": "research"}})
    jobs.ray_job("queued")
    jobs.patch("trainjob", "queued", {"spec": {"suspend": True}})
    eventually(lambda: asked(("create", "events"), ("list", "events"), ("list", "kueue.x-k8s.io/workloads")))
    jobs.create("told", suspend=True, notify=[{"webhook": {"secretName": "hook"}, "events": ["Suspended"]}])
    eventually(lambda: "there is no Secret hook" in str(jobs.status("told").get("notifications")))
    jobs.create("late", deadlines={"total": "1s"}, ttlAfterFinished="1s")
    eventually(lambda: jobs.get("trainjobs", "late") is None and jobs.get("rayjobs", "late") is None)
    assert asked(("delete", "ray.io/rayjobs"), ("delete", "trainjob.dev/trainjobs"))


@pytest.mark.parametrize("everywhere", [True, False], ids=["everywhere", "in one namespace"])
def test_the_operator_may_do_what_it_does_and_nothing_else(
    cluster: ControlPlane, namespace: str, tmp_path: Path, everywhere: bool
):
    jobs, others = Jobs(cluster, namespace), Jobs(cluster, "team-b")
    requests = Requests(cluster)
    cluster.kubectl("delete", "lease", OPERATOR, f"--namespace={NAMESPACE}", "--ignore-not-found")  # an earlier one's
    settings = {"namespaces": [] if everywhere else [namespace], "notify": {"secretNames": ["hook"]}}
    with installed(cluster, {"settings": settings}) as release:
        with running(release, tmp_path) as log:
            live(jobs, requests)
            others.create("other")
            if everywhere:
                others.until("other", phase="Pending", reason="PodsStarting")
        assert everywhere or others.status("other") == UNSEEN
        kind, *where = ("clusterrole",) if everywhere else ("role", f"--namespace={namespace}")
        role = json.loads(cluster.kubectl("get", kind, OPERATOR, *where, "--output=json"))
        lease = release.get("role", f"{OPERATOR}-lease")
        assert lease is not None
        check = json.loads(cluster.kubectl("get", "clusterrole", "trainjob-reporter-check", "--output=json"))
    asked, elected = set(requests.of(None, namespace, "team-b")), set(requests.of(NAMESPACE))
    assert not [use for use, status in asked | elected if status in (401, 403)], log.read_text()
    assert {use for use, _ in asked} | NOT_ASKED == granted(role["rules"]) | granted(check["rules"])
    [secrets] = [rule for rule in role["rules"] if "secrets" in rule["resources"]]
    assert (secrets["verbs"], secrets["resourceNames"]) == (["get"], ["hook"])
    assert not [rule for rule in find(render({}), "ClusterRole")["rules"] if "secrets" in rule["resources"]]
    assert {use for use, _ in elected} == granted(lease["rules"])


def test_those_who_may_view_or_edit_a_namespace_may_view_or_edit_its_trainjobs(cluster: ControlPlane):
    def has(role: str, verbs: set[str]) -> bool:
        rules = json.loads(cluster.kubectl("get", "clusterrole", role, "--output=json"))["rules"]
        own = {use for use in granted(rules) if use[1].startswith("trainjob.dev/")}
        return own == {(verb, "trainjob.dev/trainjobs") for verb in verbs} | LOOK

    with installed(cluster, {}):
        eventually(lambda: has("view", set()))
        for role in ("edit", "admin"):
            eventually(lambda role=role: has(role, {"create", "update", "patch", "delete", "deletecollection"}))
