"""A client of the API server for pods, with the token of the pod's service account."""

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

from trainjob.api.names import ACCOUNT

JSON_PATCH = "application/json-patch+json"
TIMEOUT_SECONDS = 10

Operation = dict[str, Any]


class RequestRefused(Exception):
    """The API server refused a request: HTTP status and the server's message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class ApiServer:
    """Address of the API server and the credentials for it."""

    url: str
    account: Path
    """Folder with `token` and `ca.crt`. The kubelet renews them, so each request reads them again."""

    @classmethod
    def of_this_pod(cls) -> Self | None:
        """The server of this pod's cluster; None outside a cluster and in pods without a token."""
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if host is None or not (ACCOUNT / "token").exists():
            return None
        return cls(f"https://{f'[{host}]' if ':' in host else host}:{port}", ACCOUNT)

    def patch(self, path: str, operations: Sequence[Operation], manager: str) -> bytes:
        """Applies a JSON Patch (RFC 6902) to an object as the field manager `manager`, and returns the object as JSON.

        Raises RequestRefused, or OSError or HTTPException if the server does not answer properly.
        """
        context = ssl.create_default_context(cafile=self.account / "ca.crt")
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # some clusters' own CAs lack extensions
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
            raise RequestRefused(error.code, _message(error)) from None


def _message(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read())["message"])
    except (ValueError, KeyError, TypeError):  # a proxy answered, not the API server
        return error.reason
