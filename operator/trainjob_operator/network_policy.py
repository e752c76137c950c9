"""Restricts access to a job's Ray processes: token authentication and NetworkPolicies."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.names import UID_LABEL
from trainjob_operator.names import (
    MANAGER,
    NAME_ANNOTATION,
    NETWORK_ANNOTATION,
    SERVES_LABEL,
    owner_reference,
    ray_job_name,
)
from trainjob_operator.settings import NetworkSettings

DASHBOARD = 8265
"""The port of Ray's dashboard, where KubeRay polls the job and deploys Serve applications."""


def authentication(network: NetworkSettings) -> KubernetesObject:
    """Fields of a RayCluster that turn on token authentication, if the settings ask for it."""
    return {"authOptions": {"mode": "token"}} if network.ray_tokens else {}


def policy_name(job: TrainJob) -> str:
    """The name of the job's NetworkPolicy, with the UID, so that no user can take it before the TrainJob exists."""
    return f"trainjob-{job.metadata.uid}"


def network_policy(job: TrainJob, network: NetworkSettings) -> KubernetesObject:
    """A NetworkPolicy that lets only the job's own pods reach each other, and KubeRay reach the dashboard. It is
    deleted with the TrainJob."""
    job_label = {UID_LABEL: job.metadata.uid}
    metadata = {
        "name": policy_name(job),
        "namespace": job.metadata.namespace,
        "labels": job_label | {"app.kubernetes.io/managed-by": MANAGER},
        "annotations": {NAME_ANNOTATION: job.metadata.name, NETWORK_ANNOTATION: _recorded(network)},
        "ownerReferences": [owner_reference(job)],
    }
    return _policy(metadata, job_label, network)


def recorded_network(policy: Mapping[str, Any] | None) -> NetworkSettings | None:
    """The settings that a NetworkPolicy was rendered with, from its annotation."""
    written = (policy or {}).get("metadata", {}).get("annotations", {}).get(NETWORK_ANNOTATION, "")
    try:
        return NetworkSettings.model_validate_json(written, by_alias=True, by_name=False)
    except ValidationError:
        return None


def serving_policy(job: TrainJob, network: NetworkSettings, port: int) -> KubernetesObject:
    """The same policy for the pods of the job's RayService, whose serving port is open to everyone."""
    name = ray_job_name(job.metadata.name)
    metadata = {"name": name, "annotations": {NAME_ANNOTATION: job.metadata.name}}
    if job.metadata.namespace:
        metadata["namespace"] = job.metadata.namespace
    policy = _policy(metadata, {SERVES_LABEL: name}, network)
    policy["spec"]["ingress"].append({"ports": [{"protocol": "TCP", "port": port}]})
    return policy


def _policy(metadata: KubernetesObject, labels: KubernetesObject, network: NetworkSettings) -> KubernetesObject:
    """A NetworkPolicy for the pods with these labels."""
    same_pods = {"matchLabels": labels}
    kuberay_namespace = {"matchLabels": {"kubernetes.io/metadata.name": network.kuberay_namespace}}
    kuberay = {
        "podSelector": {"matchLabels": network.kuberay_labels},
        "namespaceSelector": kuberay_namespace if network.kuberay_namespace else {},  # {} selects all namespaces
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {
            "podSelector": same_pods,
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [{"podSelector": same_pods}]},
                {"from": [kuberay], "ports": [{"protocol": "TCP", "port": DASHBOARD}]},
            ],
        },
    }


def _recorded(network: NetworkSettings) -> str:
    """The settings that `recorded_network` reads."""
    return network.model_dump_json(by_alias=True, include={"kuberay_namespace", "kuberay_labels"})
