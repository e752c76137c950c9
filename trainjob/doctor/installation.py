"""The operator's installation in a cluster: its Deployment and settings."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.document import parse
from trainjob.api.load import checked, position_in_content, without_nulls
from trainjob.api.resources import Resource
from trainjob.cluster.connection import Connection, NotFound
from trainjob.cluster.errors import ClusterError
from trainjob.errors import UserError
from trainjob_operator.settings import Settings

DEPLOYMENTS = Resource("/apis/apps/v1", "deployments")
CONFIG_MAPS = Resource("/api/v1", "configmaps")
_LABELS = "app.kubernetes.io/name=trainjob-operator"
_SETTINGS = "settings.yaml"


@dataclass(frozen=True)
class Installation:
    """The operator that watches a namespace, as far as the user may see it."""

    deployment: KubernetesObject | None = None
    settings: Settings | None = None
    problem: str = ""
    """Why the Deployment or the settings cannot be read."""

    @property
    def namespace(self) -> str:
        return self.deployment["metadata"]["namespace"] if self.deployment is not None else ""

    @property
    def policy(self) -> str | None:
        """Name of the admission policy for progress reports; None if the operator was installed without one."""
        option = "--progress-policy="
        arguments = self._pod_spec["containers"][0].get("args", ())
        return next((each.removeprefix(option) for each in arguments if each.startswith(option)), None)

    @property
    def account(self) -> str:
        """The operator's user name."""
        return f"system:serviceaccount:{self.namespace}:{self._pod_spec.get('serviceAccountName', 'default')}"

    @property
    def _pod_spec(self) -> dict[str, Any]:
        assert self.deployment is not None
        return self.deployment["spec"]["template"]["spec"]

    def watches(self, namespace: str) -> bool:
        return self.settings is not None and (not self.settings.namespaces or namespace in self.settings.namespaces)


@dataclass(frozen=True)
class Subject:
    """The subject of an examination: a namespace, for a TrainJob."""

    connection: Connection
    job: TrainJob
    """The job, with the storage and image that its pods would get, if they are known."""
    installation: Installation

    @property
    def namespace(self) -> str:
        return self.connection.namespace


def installation(connection: Connection) -> Installation:
    """The operator that watches the connection's namespace; if none does, any other operator."""
    try:
        query = {"labelSelector": _LABELS}
        deployments = connection.request("GET", DEPLOYMENTS, None, query=query).get("items") or []
    except ClusterError as error:
        return Installation(problem=str(error))
    found = list(_read(connection, deployments))
    watching = [each for each in found if each.watches(connection.namespace)]
    return (watching or found or [Installation()])[0]


def _read(connection: Connection, deployments: list[KubernetesObject]) -> Iterator[Installation]:
    for deployment in deployments:
        namespace, pod = deployment["metadata"]["namespace"], deployment["spec"]["template"]["spec"]
        names = [volume["configMap"]["name"] for volume in pod.get("volumes", ()) if "configMap" in volume]
        try:
            text = connection.request("GET", CONFIG_MAPS, namespace, names[0])["data"][_SETTINGS]
            document = parse(text, position_in_content)
            settings = checked(without_nulls(document.data, Settings), document, Settings)
        except (NotFound, KeyError, IndexError):
            problem = f"the Deployment {deployment['metadata']['name']} in {namespace} has no ConfigMap with settings"
            yield Installation(deployment, problem=problem)
        except UserError as error:
            yield Installation(deployment, problem=f"the operator's settings: {error}")
        else:
            yield Installation(deployment, settings)
