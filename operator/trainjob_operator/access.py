"""What the operator needs of the API server: the policy of who may report progress, and to list what it watches."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from aiohttp import ClientError

from trainjob_operator.api import PODS, POLICIES, POLICY_BINDINGS, RAY_JOBS, TRAIN_JOBS, Api, ApiError, Resource

RETRY_SECONDS = 5.0
"""Between two attempts at the start."""
POLICY_SECONDS = 60.0
"""Between two looks at the policy afterwards."""

logger = logging.getLogger("trainjob.operator")


@dataclass
class Access:
    """Whether it has that, and why not."""

    namespaces: list[str]
    """That are watched; all, if none is named."""
    policy: str | None
    """Name of the policy that says who may write a TrainJob's progress, and of its binding."""
    problem: str = ""
    """What is missing; empty if nothing is."""

    async def gain(self, api: Api) -> None:
        """Returns once nothing is missing. It has to be there before kopf begins, which takes no notice of a CRD that
        discovery names later."""
        if self.policy is not None:
            await self._until(lambda: self._check_policy(api), self._no_policy)
        for resource in (TRAIN_JOBS, RAY_JOBS, PODS):
            await self._until(partial(self._check_list, api, resource), f"{resource[1]} cannot be listed")
        self.problem = ""

    async def watch_policy(self, api: Api) -> None:
        """Looks for the policy again and again, and says when it is gone; work goes on, as the permissions that it
        narrows are others'. A server that does not answer says nothing about it."""
        while self.policy is not None:
            await asyncio.sleep(POLICY_SECONDS)
            try:
                await self._check_policy(api)
            except (ApiError, ClientError, OSError) as error:
                if isinstance(error, ApiError) and error.status in (403, 404, 409):
                    self._say(f"{self._no_policy}: {error}")
            else:
                self.problem = ""

    async def _until(self, attempt: Callable[[], Awaitable[None]], problem: str) -> None:
        """Tries until it succeeds; meanwhile there is this problem."""
        while True:
            try:
                return await attempt()
            except (ApiError, ClientError, OSError) as error:
                self._say(f"{problem}: {error or type(error).__name__}")
            await asyncio.sleep(RETRY_SECONDS)

    def _say(self, problem: str) -> None:
        self.problem = problem
        logger.warning("%s; trying again", problem)

    @property
    def _no_policy(self) -> str:
        what = f"the policy {self.policy}, without which every service account may write any TrainJob's status"
        return f"{what}, is not in force"

    async def _check_policy(self, api: Api) -> None:
        """Raises ApiError unless the policy and its binding are there and deny."""
        name = str(self.policy)
        policy, binding = await api.get(POLICIES, None, name), await api.get(POLICY_BINDINGS, None, name)
        missing = [kind for kind, found in (("policy", policy), ("binding", binding)) if found is None]
        if policy is None or binding is None:
            raise ApiError(
                404, f"there is no ValidatingAdmissionPolicy {name}: its {' and its '.join(missing)} is missing"
            )
        denies = binding["spec"]["policyName"] == name and "Deny" in binding["spec"]["validationActions"]
        if not denies or policy["spec"].get("failurePolicy") != "Fail":
            raise ApiError(409, "it or its binding was changed so that it denies nothing")

    async def _check_list(self, api: Api, resource: Resource) -> None:
        await self._check_any(api, resource)
        await api.discover(resource)

    async def _check_any(self, api: Api, resource: Resource) -> None:
        """Raises ApiError where a resource can be listed in none of the namespaces: whoever takes the permission away
        in one, or deletes it, does not stop the others. What is refused there is told by its watch."""
        *others, last = self.namespaces or (None,)
        for namespace in others:
            with suppress(ApiError):
                return await api.check_list(resource, namespace)
        return await api.check_list(resource, last)
