"""The API server as a pod reaches it: with the token of its own service account."""

import json
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
JSON_PATCH = "application/json-patch+json"
TIMEOUT_SECONDS = 10

Operation = dict[str, Any]


class Refusal(Exception):
    """The API server's refusal, by its HTTP status and in its words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class ApiServer:
    """Where it is, and who asks."""

    url: str
    account: Path
    """Folder with `token` and `ca.crt`, which the kubelet renews: they are read anew for each request."""

    @classmethod
    def of_this_pod(cls) -> Self | None:
        """None outside a cluster, and in a pod that mounts no token."""
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if host is None or not (ACCOUNT / "token").exists():
            return None
        return cls(f"https://{f'[{host}]' if ':' in host else host}:{port}", ACCOUNT)

    def patch(self, path: str, operations: Sequence[Operation], manager: str) -> bytes:
        """Changes an object by a JSON Patch (RFC 6902), as the field manager `manager`; returns the object, as JSON.

        Raises Refusal; OSError or HTTPException where the server does not answer as it should.
        """
        context = ssl.create_default_context(cafile=self.account / "ca.crt")
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # not every cluster's own authority has all extensions
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
        request = Request(
            f"{self.url}{path}?{urlencode({'fieldManager': manager})}",
            json.dumps(operations, allow_nan=False).encode(),
            {"Authorization": f"Bearer {(self.account / 'token').read_text().strip()}", "Content-Type": JSON_PATCH},
            method="PATCH",
        )
        try:
            with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
                return response.read()
        except HTTPError as error:
            raise Refusal(error.code, _words(error)) from None


def _words(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["message"])
    except (ValueError, KeyError, TypeError):  # something between here and the API server
        return error.reason
