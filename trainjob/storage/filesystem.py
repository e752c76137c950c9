"""Opens the pyarrow filesystem of a URI, and turns its errors into StorageErrors with a remedy."""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import cache
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from trainjob.errors import StorageError, StorageUnreachable, UserError

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 60.0
ATTEMPTS = 3

_UNREACHABLE = (
    r"NETWORK_CONNECTION|REQUEST_TIMEOUT|[Cc]ould(n't| not) (connect|resolve)|retry policy"
    r"|SERVICE_UNAVAILABLE|SLOW_DOWN|INTERNAL_FAILURE|HTTP [Ss]tatus (499|5\d\d)"  # 499: MinIO was stopped
)
_REMEDIES = {
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|INVALID_SIGNATURE|SIGNATURE_DOES_NOT_MATCH": (
        "access is refused: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (in a cluster, those in the Secret of "
        "spec.storage.secretName), and the permissions of that key"
    ),
    r"NO_SUCH_BUCKET|Bucket does not exist": "there is no such bucket: create it, or correct the URI",
    _UNREACHABLE: "the server does not answer: check spec.storage.endpoint (or AWS_ENDPOINT_URL) and that it is up",
    r"[Cc]redential": "no valid credentials were found",
    r"No space left": "the disk is full",
    r"Permission denied": "permission denied",
}
"""Remedies by patterns in the libraries' messages."""
_mounted: dict[str, fs.FileSystem] = {}
"""Filesystems of volumes, by the URI of the folder that they hold."""


def mount(uri: str, filesystem: fs.FileSystem) -> None:
    """Lets `open_filesystem` open URIs below `uri`, a volume://."""
    _mounted[uri] = filesystem


class FSSpecFiles(fs.FSSpecHandler):
    """A filesystem of fsspec. Raises a server's error where pyarrow's handler would report a missing file: see
    findings/pyarrow-fsspec-outage-is-not-found.sh."""

    def open_input_file(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(self.fs.open(path, "rb"), mode="r")

    open_input_stream = open_input_file


def open_filesystem(uri: str, endpoint: str | None = None) -> tuple[fs.FileSystem, str]:
    """The filesystem of a local path, `s3://`, `gs://` or mounted URI, and the path in it.

    S3 takes credentials from AWS_* in the environment and its server from `endpoint` or AWS_ENDPOINT_URL.
    Raises StorageError for any other scheme.
    """
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return local_filesystem(), os.path.abspath(uri)
    if scheme == "file":
        return local_filesystem(), os.path.abspath(urlsplit(uri).path)
    with storage_errors(uri):
        if scheme == "s3":
            return _s3(endpoint or os.environ.get("AWS_ENDPOINT_URL"), rest.partition("/")[0]), rest.rstrip("/")
        if scheme == "gs":
            return _gcs(), rest.rstrip("/")
        if scheme == "hf":
            return _hub(), rest.rstrip("/")
        for mounted, filesystem in _mounted.items():
            if f"{uri}/".startswith(f"{mounted}/"):
                return filesystem, rest.rstrip("/")
    raise StorageError(f"{uri}: {scheme}:// is not supported; use a path, s3:// or gs://")


@contextmanager
def storage_errors(uri: str) -> Generator[None]:
    """Turns an OSError inside into a StorageError that names `uri` and a remedy."""
    try:
        with _hub_errors(uri) if uri.startswith("hf://") else nullcontext():
            yield
    except OSError as error:
        kind = StorageUnreachable if re.search(_UNREACHABLE, str(error)) else StorageError
        raise kind(f"{uri}: {_explained(str(error))}") from error


@contextmanager
def _hub_errors(uri: str) -> Generator[None]:
    """Turns connection errors of the hub's client into StorageUnreachable."""
    try:
        yield
    except (OSError, ValueError, UserError):  # Arrow's are ValueErrors
        raise
    except Exception as error:  # from whichever HTTP library the hub's client uses
        raise StorageUnreachable(
            f"{uri}: the Hugging Face hub does not answer ({error}): connect to the network, or copy the data set to a "
            "folder or a bucket"
        ) from error


@cache
def local_filesystem() -> fs.LocalFileSystem:
    return fs.LocalFileSystem()


@cache
def _s3(endpoint: str | None, bucket: str) -> fs.S3FileSystem:
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None:
        region = "us-east-1" if endpoint else fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        endpoint_override=endpoint,
        region=region,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        allow_delayed_open=True,
    )


@cache
def _gcs() -> fs.FileSystem:
    return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=REQUEST_SECONDS))


@cache
def _hub() -> fs.FileSystem:
    """Read-only; private repositories need HF_TOKEN."""
    from huggingface_hub import HfFileSystem

    return fs.PyFileSystem(FSSpecFiles(HfFileSystem()))


def _explained(message: str) -> str:
    brief = " ".join(message.split())[:300]
    for pattern, remedy in _REMEDIES.items():
        if re.search(pattern, message):
            return f"{remedy} ({brief})"
    return brief
