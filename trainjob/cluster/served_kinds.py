"""The kinds of objects that a cluster serves."""

from trainjob.api.names import GROUP, KIND, PLURAL, VERSION
from trainjob.api.resources import Resource
from trainjob.cluster.connection import Connection, NotFound
from trainjob.cluster.errors import ClusterError, NoTrainJobs, Refused


def resource_of(connection: Connection, api_version: str, kind: str) -> tuple[Resource, bool]:
    """The API path of a kind, and whether its objects have namespaces."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    try:
        served = connection.request("GET", Resource(*root.rsplit("/", 1)), None)["resources"]
    except NotFound:
        served = []
    for each in served:
        if each["kind"] == kind and "/" not in each["name"]:
            return Resource(root, each["name"]), each["namespaced"]
    unknown = Refused(f"the cluster knows no {kind} of {api_version}")
    is_trainjob = (api_version, kind) == (f"{GROUP}/{VERSION}", KIND)
    raise why_not_served(connection, unknown) if is_trainjob else unknown


def why_not_served(connection: Connection, error: ClusterError) -> ClusterError:
    """Why the cluster does not serve TrainJobs of this version."""
    try:
        group = connection.request("GET", Resource("/apis", GROUP), None)
    except NotFound:
        return NoTrainJobs(
            f"the cluster {connection.url} knows no TrainJobs ({PLURAL}.{GROUP}): install the operator's "
            "chart there, or choose another context"
        )
    except ClusterError:
        return error
    versions = [each["groupVersion"] for each in group["versions"]]
    if f"{GROUP}/{VERSION}" in versions:
        return error
    served = ", ".join(versions)
    return NoTrainJobs(
        f"the cluster {connection.url} has TrainJobs of {served}, and this trainjob knows {GROUP}/{VERSION}: "
        "install the trainjob of the operator's version"
    )
