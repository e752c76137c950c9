"""The content of a notification, and the request that delivers it."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from trainjob.api import TrainJob
from trainjob.api.notify import Receiver
from trainjob.api.resources import SECRETS
from trainjob.api.status_reasons import explanation
from trainjob.api.trainjob_status import Notification
from trainjob.schema.uris import ENDPOINT
from trainjob_operator.api import Api, ApiError
from trainjob_operator.receivers import secret_refusal
from trainjob_operator.settings import NotifySettings

MIN_KEY_BYTES = 24


class CannotSend(Exception):
    """Why a receiver cannot be reached as it is configured."""


async def request_for(
    api: Api, settings: NotifySettings, job: TrainJob, receiver: Receiver, notification: Notification
) -> dict[str, Any]:
    """The request that trainjob_operator.delivery reads. Raises CannotSend."""
    secret = await _secret(api, settings, str(job.metadata.namespace), receiver)
    said = payload(job, notification)
    if receiver.webhook is not None:
        url = receiver.webhook.url or _value(secret, receiver, "url")
        if not re.fullmatch(ENDPOINT, url):
            raise CannotSend(f"url in the Secret {receiver.secret_name} must be an http(s) URL without a user")
        key, body = _signing_key(_value(secret, receiver, "key"), receiver), json.dumps(said)
        webhook = {"url": url, "headers": headers(key, said["id"], body), "body": body}
        return {"hosts": settings.hosts, "webhook": webhook}
    assert receiver.apprise is not None
    url = _value(secret, receiver, receiver.apprise.key)
    if len(url.split()) > 1:
        raise CannotSend(f"{receiver.apprise.key} in the Secret {receiver.secret_name} must be one URL")
    title = f"TrainJob {said['namespace']}/{said['name']}: {notification.event}"
    lines = [": ".join(filter(None, (notification.reason, notification.message)))]
    lines += [f"What to do: {said['remedy']}"] if said["remedy"] else []
    message = {"url": url, "title": title, "body": "\n".join(lines), "is_failure": notification.event == "Failed"}
    return {"hosts": settings.hosts, "apprise": message}


def payload(job: TrainJob, notification: Notification) -> dict[str, Any]:
    """The body of a webhook."""
    known = explanation(notification.reason)
    remedy = known.remedy if known is not None and known.remedy != "nothing" else None
    return {
        "id": notification.id,
        "event": notification.event,
        "time": notification.time.isoformat(),
        "namespace": job.metadata.namespace,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "reason": notification.reason,
        "message": notification.message,
        "meaning": known.meaning if known is not None else None,
        "remedy": remedy,
    }


def headers(key: bytes, number: str, body: str) -> dict[str, str]:
    """The headers of the Standard Webhooks specification: ID, time and signature of both and the body."""
    now = str(int(time.time()))
    signature = hmac.digest(key, f"{number}.{now}.{body}".encode(), hashlib.sha256)
    return {
        "Content-Type": "application/json",
        "User-Agent": f"trainjob-operator/{version('trainjob')}",
        "webhook-id": number,
        "webhook-timestamp": now,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


async def _secret(api: Api, settings: NotifySettings, namespace: str, receiver: Receiver) -> Mapping[str, str]:
    """The data of a receiver's Secret, in base64."""
    name = receiver.secret_name
    if name not in settings.secret_names:
        raise CannotSend(secret_refusal(receiver, settings))
    try:
        found = await api.get(SECRETS, namespace, name)
    except ApiError as error:
        if error.status != 403:
            raise
        raise CannotSend(f"the operator's role does not let it read the Secret {name}") from None
    if found is None:
        raise CannotSend(f"there is no Secret {name} in the namespace {namespace}")
    return found.get("data") or {}


def _value(secret: Mapping[str, str], receiver: Receiver, key: str) -> str:
    name = receiver.secret_name
    try:
        found = base64.b64decode(secret[key]).decode().strip()
    except KeyError:
        raise CannotSend(f"the Secret {name} has no {key}") from None
    except UnicodeDecodeError:
        raise CannotSend(f"{key} in the Secret {name} is not text") from None
    if not found:
        raise CannotSend(f"{key} in the Secret {name} is empty")
    return found


def _signing_key(text: str, receiver: Receiver) -> bytes:
    try:
        key = base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < MIN_KEY_BYTES:
        raise CannotSend(
            f"key in the Secret {receiver.secret_name} must be the base64 of at least {MIN_KEY_BYTES} random bytes: "
            "openssl rand -base64 32"
        )
    return key
