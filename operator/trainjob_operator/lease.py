"""Leader election among several replicas, by a Lease."""

import asyncio
import logging
import math
import socket
from typing import Any
from uuid import uuid4

from trainjob.api.cluster import KubernetesObject
from trainjob.api.resources import LEASES
from trainjob_operator.api import Api

NAME = "trainjob-operator"

LEASE_SECONDS = 15
"""Another replica takes the Lease after seeing no change of it for this long."""
DEADLINE_SECONDS = 10
"""A replica stops leading this long after it began its last renewal. The margin to LEASE_SECONDS covers requests that
are still on their way."""
RETRY_SECONDS = 2
REQUEST_SECONDS = 5

logger = logging.getLogger("trainjob.operator")


class Lease:
    """One replica's view of the Lease. All times are from the local monotonic clock, so no clock has to be correct."""

    def __init__(self, api: Api, namespace: str) -> None:
        """`api` must time out after REQUEST_SECONDS."""
        self._api, self._namespace = api, namespace
        self._identity = f"{socket.gethostname()}-{uuid4().hex[:8]}"
        self._renewed = self._tried = -math.inf
        """When the last renewal that succeeded began, and the last attempt at one."""
        self._written: KubernetesObject | None = None
        """The Lease as this replica last wrote it; None if another replica may have written it since."""
        self._seen_version: str | None = None
        self._seen_at = -math.inf
        """When this version was first seen."""

    @property
    def is_held(self) -> bool:
        """Whether this replica is the leader."""
        return _now() < self._renewed + DEADLINE_SECONDS

    async def acquire(self) -> None:
        """Returns once this replica is the leader."""
        while not self.is_held:
            await self._try_acquire()
            if not self.is_held:
                await asyncio.sleep(RETRY_SECONDS)

    async def keep(self) -> None:
        """Renews the Lease. Returns when this replica is no longer the leader."""
        while self.is_held:
            try:
                async with asyncio.timeout_at(self._renewed + DEADLINE_SECONDS):
                    await asyncio.sleep(self._tried + RETRY_SECONDS - _now())
                    await self._try_acquire()
            except TimeoutError:
                return

    async def release(self) -> None:
        """Gives up the Lease if this replica still holds it, so that another one need not wait until it expires."""
        self._renewed = -math.inf
        try:
            found = await self._api.get(LEASES, self._namespace, NAME)
            if found is not None and found["spec"].get("holderIdentity") == self._identity:
                del found["spec"]["holderIdentity"]
                await self._api.replace(LEASES, self._namespace, NAME, found)
        except Exception as error:
            logger.warning("the Lease could not be released: %s", error or type(error).__name__)

    async def _try_acquire(self) -> None:
        """Acquires or renews the Lease unless another replica holds it. Errors are logged; the caller tries again.

        A renewal is a single request, which the API server refuses if the Lease has changed, so it succeeds in time
        even if requests take seconds.
        """
        self._tried = _now()
        found, self._written = self._written, None
        try:
            found = found or await self._api.get(LEASES, self._namespace, NAME)
            if found is not None and self._is_held_by_another(found):
                self._renewed = -math.inf
                return
            wanted, began = self._renewal(found), _now()
            if found is None:
                self._written = await self._api.create(LEASES, self._namespace, wanted)
            else:
                self._written = await self._api.replace(LEASES, self._namespace, NAME, wanted)
        except Exception as error:
            logger.warning("the Lease could not be renewed: %s; trying again", error or type(error).__name__)
        else:
            self._renewed = began

    def _is_held_by_another(self, found: KubernetesObject) -> bool:
        version = found["metadata"]["resourceVersion"]
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, _now()
        holder = found["spec"].get("holderIdentity")
        return holder not in (None, self._identity) and _now() < self._seen_at + LEASE_SECONDS

    def _renewal(self, found: KubernetesObject | None) -> KubernetesObject:
        """The Lease with this replica as holder, at the resourceVersion that was found."""
        now = self._api.now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before: dict[str, Any] = found["spec"] if found is not None else {}
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": before.get("acquireTime") if before.get("holderIdentity") == self._identity else now,
            "renewTime": now,
        }
        if found is not None:
            return {**found, "spec": spec}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME}, "spec": spec}


def _now() -> float:
    return asyncio.get_running_loop().time()
