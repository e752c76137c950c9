"""Secrets that a TrainJob may hold, taken out of what is kept, shown or logged."""

import hashlib
import re
from typing import Any

_USER = re.compile(r"://(?!<hidden>@)[^/?#\s]+@")
_QUERY = re.compile(r"""(https?://[^\s?]*\?)(?!<hidden:)(\S*[^\s"'<>.,:;)\]])""")
_SIGNATURE = re.compile(r"(x-amz-|x-goog-|(awsaccesskeyid|googleaccessid|signature|expires)=)", re.IGNORECASE)
"""Parameters that say who may read, until when, and not what: a new signature is no other address."""
_HIDDEN = re.compile(r"<hidden:[0-9a-f]{4}>")


def without_secrets(text: str) -> str:
    """The text with what may be secret in addresses hidden: a user and a password before the host, and what follows the
    question mark, where presigned addresses have their signature."""
    return _QUERY.sub(lambda found: found[1] + hidden(_chosen(found[2])), _USER.sub("://<hidden>@", text))


def hidden(secret: str) -> str:
    """What stands for a secret, with 16 bits of its digest: enough to see that it has changed, too few to find it by
    trying."""
    return f"<hidden:{hashlib.blake2b(secret.encode(errors='surrogatepass'), digest_size=2).hexdigest()}>"


def has_hidden(text: str) -> bool:
    """Whether something was hidden in the text by `hidden`."""
    return _HIDDEN.search(text) is not None


def redacted(job: dict[str, Any]) -> dict[str, Any]:
    """A TrainJob, as YAML has it, without secrets: those in addresses, and all values of `spec.pods.env`."""
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
