"""Types of Kubernetes objects, by their path in the API."""

from typing import NamedTuple

from trainjob.api.names import GROUP, PLURAL, VERSION


class Resource(NamedTuple):
    """Objects of one type, such as all pods."""

    root: str
    """Such as `/api/v1`."""
    plural: str

    def path(self, namespace: str | None, name: str = "") -> str:
        """The path of one object, or of all. A namespace of None means all namespaces, or objects without one."""
        within = f"/namespaces/{namespace}" if namespace is not None else ""
        return f"{self.root}{within}/{self.plural}" + (f"/{name}" if name else "")

    @property
    def group(self) -> str:
        """Empty for Kubernetes' own core types."""
        return self.root.split("/")[2] if self.root.startswith("/apis/") else ""

    @property
    def full_name(self) -> str:
        """The plural with its group, such as `trainjobs.trainjob.dev`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


TRAIN_JOBS = Resource(f"/apis/{GROUP}/{VERSION}", PLURAL)
PODS = Resource("/api/v1", "pods")
SECRETS = Resource("/api/v1", "secrets")
EVENTS = Resource("/api/v1", "events")
NODES = Resource("/api/v1", "nodes")
JOBS = Resource("/apis/batch/v1", "jobs")
LEASES = Resource("/apis/coordination.k8s.io/v1", "leases")
RAY_JOBS = Resource("/apis/ray.io/v1", "rayjobs")

METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""In the header Accept: a list of objects with their metadata alone."""
