"""Removes secrets of a TrainJob from files, messages and logs."""

import hashlib
import re
from typing import Any

_USER = re.compile(r"://(?!<hidden>@)[^/?#\s]+@")
_QUERY = re.compile(r"""(https?://[^\s?]*\?)(?!<hidden:)(\S*[^\s"'<>.,:;)\]])""")
_SIGNATURE = re.compile(r"(x-amz-|x-goog-|(awsaccesskeyid|googleaccessid|signature|expires)=)", re.IGNORECASE)
"""Query parameters that grant access; they do not identify the object, so a new signature is the same address."""
_HIDDEN = re.compile(r"<hidden:[0-9a-f]{4}>")


def without_secrets(text: str) -> str:
    """Hides possible secrets in the addresses of a text: user and password before the host, and the query string, which
    holds the signature of presigned addresses."""
    return _QUERY.sub(lambda found: found[1] + hidden(_chosen(found[2])), _USER.sub("://<hidden>@", text))


def hidden(secret: str) -> str:
    """A placeholder for a secret with 16 bits of its digest: enough to see that it changed, too few to guess it."""
    return f"<hidden:{hashlib.blake2b(secret.encode(errors='surrogatepass'), digest_size=2).hexdigest()}>"


def has_hidden(text: str) -> bool:
    """Whether the text contains a placeholder of `hidden`."""
    return _HIDDEN.search(text) is not None


def redacted(job: dict[str, Any]) -> dict[str, Any]:
    """A TrainJob, as parsed from YAML, without the secrets in addresses and without the values of `spec.pods.env`."""
    result = _in_texts(job)
    for variable in result["spec"].get("pods", {}).get("env", []):
        if "value" in variable and not has_hidden(str(variable["value"])):
            variable["value"] = hidden(str(variable["value"]))
    annotations = result["metadata"].get("annotations", {})
    annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)  # the whole TrainJob once more
    return result


def _chosen(query: str) -> str:
    return "&".join(part for part in query.split("&") if not _SIGNATURE.match(part))


def _in_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _in_texts(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_in_texts(item) for item in value]
    return without_secrets(value) if isinstance(value, str) else value
