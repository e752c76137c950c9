"""The process that delivers a notification, with a real receiver."""

import asyncio
import base64
import hashlib
import hmac
import json

import pytest

from trainjob_operator.delivery import is_internal
from trainjob_operator.notification_request import headers
from trainjob_operator.notifier import attempt
from webhook_receiver import ADDRESS, receiving

HERE = [ADDRESS]
KEY = bytes(range(32))


def send(url: str, hosts: list[str] = HERE) -> str:
    body = json.dumps({"event": "Failed"})
    webhook = {"url": url, "headers": headers(KEY, "an-id", body), "body": body}
    return asyncio.run(attempt({"hosts": hosts, "webhook": webhook}))


def test_a_webhook_is_signed_as_standard_webhooks_are():
    with receiving() as received:
        assert send(received.url) == ""
    [(path, given, body, _)] = received.requests
    assert (path, json.loads(body), given["content-type"]) == ("/hook", {"event": "Failed"}, "application/json")
    signed = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert (given["webhook-id"], given["webhook-signature"]) == ("an-id", f"v1,{expected}")


@pytest.mark.parametrize(("status", "error"), [(500, "HTTP 500"), (302, "HTTP 302; redirects are not followed")])
def test_another_answer_is_an_error(status: int, error: str):
    with receiving() as received:
        received.status = status
        assert send(received.url) == error
    assert len(received.requests) == 1


@pytest.mark.parametrize("hosts", [[], ["*.example.com"], ["*"]])
def test_an_address_that_is_not_allowed_gets_nothing(hosts: list[str]):
    with receiving() as received:
        for url in (received.url, received.url.replace(ADDRESS, "localhost"), received.url.replace(ADDRESS, "127.1")):
            error = send(url, hosts)
            assert "may not be sent to" in error or "is not in notify.hosts" in error
    assert received.requests == []


def test_a_closed_port_is_an_error_without_the_path():
    with receiving() as received:
        url = received.url
    error = send(f"{url}/secret-token")
    assert "refused" in error
    assert "secret" not in error


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "169.254.169.254",
        "fe80::1%eth0",
        "::1",
        "::",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "255.255.255.255",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
    ],
)
def test_addresses_of_nodes_and_metadata_servers_are_internal(address: str):
    assert is_internal(address)


@pytest.mark.parametrize("address", ["10.96.0.10", "192.168.1.1", "100.64.0.1", "fd00::1", "8.8.8.8", "2001:4860::1"])
def test_addresses_of_a_cluster_and_of_the_internet_are_not(address: str):
    assert not is_internal(address)


def test_apprise_sends_to_a_service():
    with receiving() as received:
        message = {"title": "Job", "body": "It failed", "is_failure": True}
        url = received.url.replace("http://", "json://")
        assert asyncio.run(attempt({"hosts": HERE, "apprise": {"url": url, **message}})) == ""
        [(_, _, body, _)] = received.requests
        assert {"title": "Job", "message": "It failed", "type": "failure"}.items() <= json.loads(body).items()
        received.status = 500
        error = asyncio.run(attempt({"hosts": HERE, "apprise": {"url": url, **message}}))
        assert error == "apprise could not send to json: HTTP 500"
        error = asyncio.run(attempt({"hosts": [], "apprise": {"url": url, **message}}))
        assert "may not be sent to" in error
        error = asyncio.run(attempt({"hosts": [], "apprise": {"url": "my-token", **message}}))
        assert error == "apprise does not understand the URL in the Secret"
    assert len(received.requests) == 2


@pytest.mark.parametrize(
    "url", ["syslog://", "rsyslog://127.0.0.1", "mailto://a:b@127.0.0.1", "mqtt://127.0.0.1/topic"]
)
def test_every_service_of_apprise_is_guarded(url: str):
    message = {"title": "Job", "body": "It failed", "is_failure": True}
    error = asyncio.run(attempt({"hosts": ["hooks.example.com"], "apprise": {"url": url, **message}}))
    assert error != ""
