"""The Lease that says which of several replicas works."""

import socket
from uuid import uuid4

from kubernetes.aio.client import ApiClient, V1Lease, V1ObjectMeta
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

NAME = "trainjob-operator"


class Lease(LeaseLock):
    """The client's lock, whose own `create` passes an argument that the client refuses (kubernetes 37.0)."""

    def __init__(self, namespace: str, client: ApiClient) -> None:
        super().__init__(NAME, namespace, f"{socket.gethostname()}-{uuid4().hex[:8]}", client)

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        lease = V1Lease(metadata=V1ObjectMeta(name=name), spec=self.update_lease(election_record))
        try:
            await self.api_instance.create_namespaced_lease(namespace, lease)
        except ApiException:  # another replica was faster, or the API server is away: there is a next time
            return False
        return True

    async def release(self) -> None:
        """Gives it up, so that another replica need not wait until it runs out."""
        await self.api_instance.delete_namespaced_lease(NAME, self.namespace)
