"""Delivers one notification, in a process of its own: `python -m trainjob_operator.delivery` reads a request in JSON
from its standard input and prints an error, or nothing.

A user chooses the address, so the process has no environment, is killed if it takes too long, and connects only to
addresses that the settings allow, whatever library connects.
"""

import ipaddress
import json
import os
import re
import socket
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from http.client import HTTPException
from typing import Any
from urllib import request
from urllib.error import HTTPError, URLError

TIMEOUT_SECONDS = 10
METADATA_SERVERS = ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
"""Metadata servers of clouds outside of the link-local range."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_CREDENTIALS = os.path.realpath("/var/run/secrets")
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty")
_SENDING = ("socket.connect", "socket.sendto", "socket.sendmsg")
_HTTP_STATUS = re.compile(r"error=(\d{3})\b")


class AddressRefused(OSError):
    """The settings do not allow an address."""


class NetworkGuard:
    """Lets this process connect only to the hosts that the settings allow."""

    def __init__(self, hosts: Sequence[str]) -> None:
        """`hosts` are patterns of host names, or addresses; all hosts if empty."""
        self._hosts = [host.lower() for host in hosts]
        self._resolve = socket.getaddrinfo
        self.allowed: set[str] = set()
        """The addresses that allowed hosts were resolved to."""
        self.refusal = ""

    def install(self) -> None:
        """Makes connections to other addresses fail, as well as programs and reads of the pod's credentials."""
        socket.getaddrinfo = self._checked
        sys.addaudithook(self._audit)

    def _checked(self, host: Any, *arguments: Any, **options: Any) -> Any:
        name = (host.decode() if isinstance(host, bytes) else str(host or "")).lower().rstrip(".")
        if self._hosts and not any(fnmatch(name, pattern) for pattern in self._hosts):
            self._refuse(f"the host {name} is not in notify.hosts of the operator's settings")
        found = self._resolve(host, *arguments, **options)
        for address in (str(each[-1][0]) for each in found):
            if is_internal(address) and address not in self._hosts:
                self._refuse(f"{name} is at {address}, which notifications may not be sent to")
            self.allowed.add(address)
        return found

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _PROGRAMS:
            self._refuse("programs may not be started")
        if event == "open" and _is_credential(arguments[0]):
            self._refuse("the operator's credentials may not be read")
        if event in _SENDING:
            address = arguments[1]
            if address is not None and not (isinstance(address, tuple) and address[0] in self.allowed):
                self._refuse(f"the address {address} was not looked up")

    def _refuse(self, why: str) -> None:
        self.refusal = self.refusal or why
        raise AddressRefused(why)


def _is_credential(path: Any) -> bool:
    return isinstance(path, str | bytes) and os.path.realpath(os.fsdecode(path)).startswith(_CREDENTIALS)


def is_internal(address: str) -> bool:
    """Whether an address is the operator's own, its node's, a cloud's metadata server, or not that of one host.
    Addresses of private networks are those of most receivers in a cluster."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return is_internal(str(inner))
    is_special = found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
    return is_special or found.is_reserved or found in _THIS_NETWORK or str(found) in METADATA_SERVERS


_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")


class _NoRedirects(request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def post(url: str, headers: dict[str, str], body: str) -> str:
    """Sends a webhook. Returns an error, or an empty text."""
    opener = request.build_opener(request.ProxyHandler({}), _NoRedirects)
    try:
        with opener.open(request.Request(url, body.encode(), headers), timeout=TIMEOUT_SECONDS):
            return ""
    except HTTPError as error:
        return f"HTTP {error.code}" + ("; redirects are not followed" if 300 <= error.code < 400 else "")
    except URLError as error:
        return str(error.reason)
    except HTTPException:  # its message may have parts of the answer
        return "the answer is not HTTP"


def send_by_apprise(url: str, title: str, body: str, is_failure: bool) -> str:
    """Sends a message to a service of apprise. Returns an error, or an empty text: never apprise's own words, which may
    contain the URL."""
    import logging

    try:
        import apprise
    except ModuleNotFoundError:
        return "the operator's image lacks the package apprise"
    asset = apprise.AppriseAsset(app_id="trainjob", secure_logging=True, async_mode=False)
    services, kind = apprise.Apprise(asset=asset), apprise.NotifyType.FAILURE if is_failure else apprise.NotifyType.INFO
    if not services.add(url):
        return "apprise does not understand the URL in the Secret"
    with apprise.LogCapture(level=logging.WARNING) as log:
        if services.notify(body=body, title=title, notify_type=kind):
            return ""
        status = _HTTP_STATUS.search(log.getvalue())
    service = url.partition(":")[0]
    return f"apprise could not send to {service}" + (f": HTTP {status[1]}" if status else "")


def main() -> None:
    asked = json.load(sys.stdin)
    guard = NetworkGuard(asked["hosts"])
    guard.install()
    try:
        error = post(**asked["webhook"]) if "webhook" in asked else send_by_apprise(**asked["apprise"])
    except OSError as failure:
        error = str(failure) or type(failure).__name__
    except Exception as failure:  # its message may have the URL
        error = type(failure).__name__
    if not error and not guard.allowed:  # such as syslog in this container, which nobody reads
        error = "this service sends nothing over the network"
    if error:
        print(guard.refusal or error)


if __name__ == "__main__":
    main()
