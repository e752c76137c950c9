"""The chart renders its values; each test covers one concern."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from releases import CHART, NAMESPACE, ROOT, HelmError, documents, find, helm, kinds, render, settings_file

from trainjob.crd import crd
from trainjob_operator.settings import Settings, load_settings

DIGEST = "sha256:" + "0123456789abcdef" * 4
POOL = {
    "nodeSelector": {"gpu": "a100"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "gpusPerNode": 8,
    "pod": {"dnsConfig": {"options": [{"name": "ndots", "value": "2"}]}},
}


def pod(values: dict[str, Any]) -> dict[str, Any]:
    """The operator's pod template."""
    return find(render(values), "Deployment")["spec"]["template"]


def container(values: dict[str, Any]) -> dict[str, Any]:
    return pod(values)["spec"]["containers"][0]


def test_by_default_there_is_only_what_everybody_needs():
    assert kinds(render({})) == {
        "CustomResourceDefinition", "ConfigMap", "Deployment", "Service", "ServiceAccount", "Role", "RoleBinding",
        "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    }  # fmt: skip


def test_helm_finds_nothing_to_complain_about():
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART)


def test_the_chart_has_the_version_of_the_package():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert project is not None
    assert (chart["version"], chart["appVersion"]) == (project[1], project[1])


def test_the_definition_is_the_package_s_and_kept():
    kept, other = (
        find(render({"crds": {"keep": keep}}), "CustomResourceDefinition", "trainjobs.trainjob.dev")
        for keep in (True, False)
    )
    assert kept["spec"] == other["spec"] == crd()["spec"]
    assert kept["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "annotations" not in other["metadata"]
    assert "CustomResourceDefinition" not in kinds(render({"crds": {"install": False}}))


def test_images_are_of_the_chart_s_version_unless_a_tag_or_a_digest_says_otherwise():
    assert container({})["image"] == "trainjob-operator:0.1.0"
    image = {"repository": "registry.example/operator", "tag": "1", "digest": DIGEST, "pullPolicy": "Always"}
    found = container({"image": image})
    assert found["image"] == f"registry.example/operator:1@{DIGEST}"
    assert found["imagePullPolicy"] == "Always"
    assert pod({"imagePullSecrets": ["registry"]})["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_the_settings_are_the_operator_s(tmp_path: Path):
    def load(values: dict[str, Any]) -> Settings:
        (tmp_path / "settings.yaml").write_text(settings_file(render(values)))
        return load_settings(tmp_path / "settings.yaml")

    assert load({}) == Settings(image="trainjob-trainer:0.1.0")
    own = {
        "imagePullPolicy": "Always",
        "imagePullSecrets": ["registry"],
        "nodePools": {"a100": POOL},
        "defaults": {"workerMemory": "16Gi", "startDeadline": "30m"},
        "namespaces": ["team-a"],
    }
    found = load({"settings": own, "trainer": {"image": {"repository": "registry.example/trainer", "tag": "cuda"}}})
    assert found == Settings.model_validate(own | {"image": "registry.example/trainer:cuda"})


def test_changed_settings_start_the_operator_anew():
    before, same, after = (
        pod(values)["metadata"]["annotations"]["checksum/settings"]
        for values in ({}, {"replicas": 2}, {"settings": {"nodePools": {"a100": POOL}}})
    )
    assert before == same != after


def test_the_operator_reads_the_settings_and_elects_in_its_own_namespace():
    found, volumes = container({}), pod({})["spec"]["volumes"]
    [mount] = found["volumeMounts"]
    assert found["command"] == ["trainjob-operator", "run"]
    own = [f"--settings={mount['mountPath']}/settings.yaml", f"--lease-namespace={NAMESPACE}"]
    assert found["args"] == [*own, "--progress-policy=trainjob-reporter"]
    assert container({"progress": {"enabled": False}})["args"] == own
    assert volumes == [{"name": mount["name"], "configMap": {"name": "trainjob-operator"}}]


def test_probes_and_service_go_to_the_operator_s_port():
    objects, found = render({}), container({})
    assert [port["name"] for port in found["ports"]] == ["http"]
    assert found["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert found["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    service = find(objects, "Service")["spec"]
    labels = find(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    assert [port["targetPort"] for port in service["ports"]] == ["http"]


def test_the_operator_s_pod_goes_where_it_is_told():
    own: dict[str, Any] = {
        "resources": {"limits": {"cpu": 0.5, "memory": "1Gi"}},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "priorityClassName": "system-cluster-critical",
    }
    found = pod(own | {"podLabels": {"team": "ml"}, "podAnnotations": {"note": "1"}})
    assert found["spec"].items() >= {key: value for key, value in own.items() if key != "resources"}.items()
    assert found["spec"]["containers"][0]["resources"]["limits"] == own["resources"]["limits"]
    assert found["metadata"]["labels"]["team"] == "ml"
    assert found["metadata"]["annotations"]["note"] == "1"


def test_several_replicas_are_spread_and_go_one_at_a_time():
    objects = render({"replicas": 2})
    deployment, budget = find(objects, "Deployment")["spec"], find(objects, "PodDisruptionBudget")["spec"]
    assert deployment["replicas"] == 2
    assert budget == {"maxUnavailable": 1, "selector": deployment["selector"]}
    [spread] = deployment["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == deployment["selector"]


def test_the_network_policy_leaves_probes_metrics_dns_and_the_api_server():
    objects = render({"networkPolicy": {"enabled": True, "apiServerPorts": [8443], "notifyPorts": [587]}})
    policy = find(objects, "NetworkPolicy")["spec"]
    assert policy["podSelector"] == find(objects, "Deployment")["spec"]["selector"]
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": "http"}]}]
    ports = [(port["protocol"], port["port"]) for port in policy["egress"][0]["ports"]]
    assert ports == [("UDP", 53), ("TCP", 53), ("TCP", 8443), ("TCP", 587)]


def test_priority_classes_and_further_objects():
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-{{ .Release.Name }}"}}
    objects = render(
        {
            "priorityClasses": {"research": {"value": 1000000, "preemptionPolicy": "Never"}, "urgent": {"value": 2}},
            "extraObjects": [own, "{apiVersion: v1, kind: Secret, metadata: {name: '{{ .Release.Name }}-s'}}"],
        }
    )
    research = find(objects, "PriorityClass", "research")
    assert (research["value"], research["preemptionPolicy"]) == (1000000, "Never")
    assert find(objects, "PriorityClass", "urgent")["value"] == 2
    assert find(objects, "ConfigMap", "of-trainjob")
    assert find(objects, "Secret", "trainjob-s")


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"replica": 2}, "'replica'"),
        ({"replicas": "two"}, "/replicas"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
        ({"imagePullSecrets": [{"name": "registry"}]}, "/imagePullSecrets/0"),
        ({"trainer": {"image": {"repository": ""}}}, "/trainer/image/repository"),
        ({"settings": {"image": "trainjob"}}, "/settings"),
        ({"settings": {"namespaces": ["Not ok"]}}, "/settings/namespaces/0"),
        ({"settings": {"nodePools": {"A_100": {}}}}, "'A_100'"),
        ({"settings": {"nodePools": {"a100": {"gpusPerNode": 0}}}}, "/settings/nodePools/a100/gpusPerNode"),
        ({"settings": {"nodePools": {"a100": {"gpus": 8}}}}, "/settings/nodePools/a100"),
        ({"settings": {"nodePools": {"a100": {"tolerations": [{"kee": "gpu"}]}}}}, "/a100/tolerations/0"),
        ({"settings": {"nodePools": {"a100": {"affinity": {"node": {}}}}}}, "/settings/nodePools/a100/affinity"),
        ({"settings": {"defaults": {"workerMemory": "lots"}}}, "/settings/defaults/workerMemory"),
        ({"settings": {"defaults": {"head": {"cpus": 1}}}}, "/settings/defaults/head"),
        ({"crds": {"keep": "yes"}}, "/crds/keep"),
        ({"resources": {"limits": {"memory": "much"}}}, "/resources/limits/memory"),
        ({"tolerations": {}}, "/tolerations"),
        ({"podLabels": {"team": 1}}, "/podLabels/team"),
        ({"settings": {"notify": {"secretNames": ["Hook"]}}}, "/settings/notify/secretNames/0"),
        ({"settings": {"notify": {"receivers": [{"events": []}]}}}, "/settings/notify/receivers/0"),
        ({"networkPolicy": {"apiServerPorts": [70000]}}, "/networkPolicy/apiServerPorts/0"),
        ({"metrics": {"serviceMonitor": {"interval": "often"}}}, "/metrics/serviceMonitor/interval"),
        ({"priorityClasses": {"research": {}}}, "/priorityClasses/research"),
        ({"extraObjects": [1]}, "/extraObjects/0"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(values: dict[str, Any], path: str):
    with pytest.raises(HelmError, match=re.escape(path)):
        render(values)


def test_notes_warn_of_what_is_missing_and_say_what_to_do():
    def notes(values: dict[str, Any]) -> str:
        text = helm("install", "trainjob", CHART, "--dry-run=client", f"--namespace={NAMESPACE}", values=values)
        return text.partition("NOTES:")[2]

    assert "KubeRay is not installed" in notes({})
    assert "kubectl --namespace trainjob-system rollout status deployment/trainjob-operator" in notes({})
    assert "all namespaces" in notes({})
    named = notes({"settings": {"namespaces": ["team-a", "team-b"], "nodePools": {"b": {}, "a": {}}}})
    assert "TrainJobs in team-a, team-b" in named
    assert "spec.workers.nodePool: a, b" in named
    assert "crds.install is false" in notes({"crds": {"install": False}})


def test_nobody_may_write_a_status_where_the_api_server_has_no_policies():
    def reporters(*kinds: str) -> set[str]:
        options = [f"--api-versions={kind}" for kind in kinds]
        objects = documents(helm("template", "trainjob", CHART, *options))
        return {found["kind"] for found in objects if found["metadata"]["name"] == "trainjob-reporter"}

    policies = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
    every = {"ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert reporters("v1/Pod") == set()
    assert reporters("v1/Pod", policies) == reporters() == every
