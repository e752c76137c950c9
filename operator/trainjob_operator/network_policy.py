"""Who may connect to a job's pods: a NetworkPolicy for each job."""

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob_operator.names import MANAGER, NAME_ANNOTATION, UID_LABEL, owner_reference
from trainjob_operator.settings import Network

DASHBOARD = 8265
"""The port of Ray's dashboard, where KubeRay asks how the job does."""


def policy_name(job: TrainJob) -> str:
    """With the UID, as nobody can take a name before its TrainJob is there."""
    return f"trainjob-{job.metadata.uid}"


def network_policy(job: TrainJob, network: Network) -> KubernetesObject:
    """Lets the job's own pods reach each other, and KubeRay the dashboard; it goes with the TrainJob."""
    own = {"matchLabels": {UID_LABEL: job.metadata.uid}}
    where = {"matchLabels": {"kubernetes.io/metadata.name": network.kuberay_namespace}}
    kuberay = {
        "podSelector": {"matchLabels": network.kuberay_labels},
        "namespaceSelector": where if network.kuberay_namespace else {},
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": policy_name(job),
            "namespace": job.metadata.namespace,
            "labels": {UID_LABEL: job.metadata.uid, "app.kubernetes.io/managed-by": MANAGER},
            "annotations": {NAME_ANNOTATION: job.metadata.name},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "podSelector": own,
            "policyTypes": ["Ingress"],
            "ingress": [
                {"from": [{"podSelector": own}]},
                {"from": [kuberay], "ports": [{"protocol": "TCP", "port": DASHBOARD}]},
            ],
        },
    }
