"""Waits until the operator has the access it needs: the admission policy for progress reports, and list permissions."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from aiohttp import ClientError

from trainjob.api.resources import PODS, RAY_JOBS, TRAIN_JOBS, Resource
from trainjob_operator.api import POLICIES, POLICY_BINDINGS, Api, ApiError

RETRY_SECONDS = 5.0
"""Time between two checks at startup."""
POLICY_SECONDS = 60.0
"""Time between two checks of the policy after startup."""
MANY_NAMESPACES = 100
"""With more namespaces than this, watching the whole cluster costs less than watching each of them."""

logger = logging.getLogger("trainjob.operator")


@dataclass
class AccessCheck:
    """Checks the operator's access and keeps the current problem for /readyz."""

    namespaces: list[str]
    """The watched namespaces; all of them if the list is empty."""
    policy: str | None
    """Name of the ValidatingAdmissionPolicy that restricts who may report progress, and of its binding; None to skip
    the check."""
    problem: str = ""
    """The missing permissions and policies; empty if there are none."""

    async def wait(self, api: Api) -> None:
        """Returns once nothing is missing. This must precede kopf's start: kopf ignores CRDs that appear in discovery
        later."""
        if self.policy is not None:
            await self._retry(lambda: self._check_policy(api), self._policy_problem)
        for resource in (TRAIN_JOBS, RAY_JOBS, PODS):
            await self._retry(partial(self._check_list, api, resource), f"{resource[1]} cannot be listed")
        self.problem = ""

    async def watches_whole_cluster(self, api: Api) -> bool:
        """Whether to watch the whole cluster: if all namespaces are watched, or many, and permissions allow it."""
        if len(self.namespaces) <= MANY_NAMESPACES:
            return not self.namespaces
        needs = itertools.product(("list", "watch"), (TRAIN_JOBS, RAY_JOBS, PODS))
        try:
            return all([await api.may(verb, resource) for verb, resource in needs])
        except (ApiError, ClientError, OSError):
            return False

    async def watch_policy(self, api: Api) -> None:
        """Checks the policy periodically and reports when it is gone. Work goes on, since the policy restricts other
        accounts, not the operator. A server that does not respond does not mean that the policy is gone."""
        while self.policy is not None:
            await asyncio.sleep(POLICY_SECONDS)
            try:
                await self._check_policy(api)
            except (ApiError, ClientError, OSError) as error:
                if isinstance(error, ApiError) and error.status in (403, 404, 409):
                    self._report(f"{self._policy_problem}: {error}")
            else:
                self.problem = ""

    async def _retry(self, attempt: Callable[[], Awaitable[None]], problem: str) -> None:
        """Repeats the attempt until it succeeds, and reports `problem` meanwhile."""
        while True:
            try:
                return await attempt()
            except (ApiError, ClientError, OSError) as error:
                self._report(f"{problem}: {error or type(error).__name__}")
            await asyncio.sleep(RETRY_SECONDS)

    def _report(self, problem: str) -> None:
        self.problem = problem
        logger.warning("%s; trying again", problem)

    @property
    def _policy_problem(self) -> str:
        what = f"the policy {self.policy}, without which every service account may write any TrainJob's status"
        return f"{what}, is not in force"

    async def _check_policy(self, api: Api) -> None:
        """Raises ApiError unless the policy and its binding exist and deny requests."""
        name = str(self.policy)
        policy, binding = await api.get(POLICIES, None, name), await api.get(POLICY_BINDINGS, None, name)
        missing = [kind for kind, found in (("policy", policy), ("binding", binding)) if found is None]
        if policy is None or binding is None:
            what = " and ".join(missing)
            raise ApiError(404, f"the ValidatingAdmissionPolicy {name} is not in place: missing {what}")
        denies = binding["spec"]["policyName"] == name and "Deny" in binding["spec"]["validationActions"]
        if not denies or policy["spec"].get("failurePolicy") != "Fail":
            raise ApiError(409, "the policy or its binding was changed and no longer denies anything")

    async def _check_list(self, api: Api, resource: Resource) -> None:
        await self._check_any(api, resource)
        await api.discover(resource)

    async def _check_any(self, api: Api, resource: Resource) -> None:
        """Raises ApiError if the resource cannot be listed in any of the namespaces. One namespace that was deleted, or
        where the permission was revoked, must not stop the others; its own watch reports the problem."""
        *others, last = self.namespaces or (None,)
        for namespace in others:
            with suppress(ApiError):
                return await api.check_list(resource, namespace)
        return await api.check_list(resource, last)
