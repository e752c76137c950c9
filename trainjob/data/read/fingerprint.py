"""Fingerprints of the data's files, which show whether the data has changed since the run began."""

import hashlib
import json
import urllib.request
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from trainjob.api import Source, TrainJobSpec
from trainjob.data.read.listing import File
from trainjob.data.read.opening import HTTP_SECONDS, is_http
from trainjob.data.read.source import files_of, sources_of
from trainjob.errors import DataError, listed, notify
from trainjob.storage import Folder, concurrently

SOURCES_FILE = "sources.json"
"""The file with the fingerprints of a function's run; other runs keep them with the fitted preprocessor."""


@dataclass(frozen=True)
class Fingerprint:
    """The files of one source."""

    files: int
    bytes: int
    changed: str
    """Modification time of the newest file; on the web, its ETag or date; empty if unknown."""
    names: str
    """A digest of the files' names and sizes."""
    times: str
    """A digest of the files' modification times."""


def fingerprints(spec: TrainJobSpec) -> dict[str, Fingerprint]:
    """The fingerprint of each set that has its own source."""
    assert spec.dataset is not None
    return {name: fingerprint_of(spec, source) for name, source in sources_of(spec.dataset).items()}


def fingerprint_of(spec: TrainJobSpec, source: Source) -> Fingerprint:
    """The fingerprint of a source of the TrainJob as it is now."""
    return _of_all(files_of(source, spec.storage.endpoint if spec.storage else None))


def changes_of(before: Fingerprint, now: Fingerprint) -> str:
    """Differences in names and sizes, in words; empty if there are none."""
    if before.names == now.names:
        return ""
    fields = [
        f"{name} {old:,} → {new:,}"
        for name, old, new in (("files", before.files, now.files), ("bytes", before.bytes, now.bytes))
        if old != new
    ]
    return ", ".join([*(fields or ["other files"]), f"changed {before.changed} → {now.changed}"])


def changed_between_passes(before: Fingerprint, now: Fingerprint, source: Source) -> bool:
    """Whether files have changed between two passes over them. On the web only a known size counts: servers of one file
    may name different ETags, and need not answer."""
    if any(map(is_http, source.all_uris)):
        return 0 not in (before.bytes, now.bytes) and before.names != now.names
    return before != now


def check_same_files(spec: TrainJobSpec, folder: Folder) -> None:
    """Raises DataError if the data's files differ from those of the run's first attempt, whose fingerprints are in
    `folder`. Notifies about files that were only rewritten, as their rows may be the same."""
    now = fingerprints(spec)
    if not folder.exists(SOURCES_FILE):
        folder.write(
            SOURCES_FILE, json.dumps({name: asdict(source) for name, source in now.items()}, indent=1).encode()
        )
        return
    before = {name: Fingerprint(**source) for name, source in json.loads(folder.read(SOURCES_FILE)).items()}
    refuse_changes(spec, {name: change for name, old in before.items() if (change := changes_of(old, now[name]))})
    for name, old in before.items():
        if now[name] != old:
            notify(
                f"spec.dataset.{name} was rewritten since the run began (at {old.changed}, now at "
                f"{now[name].changed}), with the same size: if its rows have changed, start over with --fresh"
            )


def refuse_changes(spec: TrainJobSpec, changes: dict[str, str]) -> None:
    """Raises DataError if any set has `changes`."""
    if not changes:
        return
    assert spec.dataset is not None
    uris = {name: listed(source.all_uris) for name, source in sources_of(spec.dataset).items()}
    raise DataError(
        "the data has changed since the run began:\n"
        + "\n".join(f"  spec.dataset.{name} ({uris[name]}): {change}" for name, change in changes.items())
        + "\nRestore the data to continue the run, start over with --fresh, or choose another metadata.name."
    )


def _of_all(files: list[File]) -> Fingerprint:
    """One fingerprint of all files, some of which may be on the web."""
    others = [file for file in files if not is_http(file.uri)]
    found = [_of_files(others)] if others else []
    found += concurrently(_of_web, [file.uri for file in files if is_http(file.uri)])
    if len(found) == 1:
        return found[0]
    return Fingerprint(
        files=sum(each.files for each in found),
        bytes=sum(each.bytes for each in found),
        changed=listed(list(dict.fromkeys(each.changed for each in found if each.changed))),
        names=_digest(each.names for each in found),
        times=_digest(each.times for each in found),
    )


def _of_files(files: list[File]) -> Fingerprint:
    times = [file.changed.isoformat() if file.changed else "" for file in files]
    return Fingerprint(
        files=len(files),
        bytes=sum(file.size for file in files),
        changed=max(times),
        names=_digest(f"{file.name}\0{file.size}" for file in files),
        times=_digest(times),
    )


def _of_web(url: str) -> Fingerprint:
    try:
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=HTTP_SECONDS) as response:
            size = int(response.headers.get("Content-Length") or 0)
            changed = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
    except (OSError, ValueError):  # not every server answers HEAD; whether the file can be read shows when it is
        size, changed = 0, ""
    return Fingerprint(files=1, bytes=size, changed=changed, names=_digest([str(size)]), times=_digest([changed]))


def _digest(texts: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(texts).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
