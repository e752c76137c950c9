"""A run's user code: fetched and locked once by the driver, kept in the run's folder, activated on every machine."""

import hashlib
import os
import re
import site
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainjob.api import TrainJobSpec
from trainjob.api.code import Code
from trainjob.code.archive import unpack
from trainjob.code.git import fetch
from trainjob.code.packages import install, lock
from trainjob.doing import DOING
from trainjob.errors import UserError
from trainjob.runs.files import CODE
from trainjob.runs.refusals import refuse_damaged
from trainjob.schema.base import StrictModel
from trainjob.storage import Folder

ARCHIVE, LOCK, VERSION = "code.tar.gz", "requirements.lock", "version.json"
"""Files in the run's folder CODE. VERSION is written last."""


class CodeVersion(StrictModel):
    """The code and packages of a run."""

    code: Code | None = None
    """The field `spec.code` that they come from."""
    requirements: list[str] | None = None
    """The field `spec.requirements` that they come from."""
    commit: str | None = None
    """The commit of a Git repository."""
    sha256: str | None = None
    """The digest of the archive."""

    @property
    def name(self) -> str | None:
        """The commit, or the archive's digest; None without code."""
        if self.commit is not None:
            return f"commit {self.commit}"
        return f"sha256:{self.sha256}" if self.sha256 is not None else None


@dataclass(frozen=True)
class UserCode:
    """Code and packages in a run's folder."""

    folder: Folder
    version: CodeVersion

    def activate(self, source: Path) -> Path:
        """Makes the packages importable in this process, and returns the folder of the function's module: `source`,
        unless the run has code. Raises UserError, and StorageError."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "trainjob" / "functions"
        if self.version.requirements:
            DOING.begin("installing packages")
            site.addsitedir(str(install(self.folder.read(LOCK), cache)))
        if self.version.sha256 is None:
            return source
        return _unpacked(self.folder, self.version.sha256, cache)


def prepare(spec: TrainJobSpec, run: Folder) -> UserCode | None:
    """Fetches the code and locks the packages of `spec`, unless the run has them from an earlier attempt. None if the
    spec names neither. Raises UserError, and TransientError if a server does not answer."""
    if spec.code is None and not spec.requirements:
        return None
    folder = run / CODE
    version = _read_version(folder)
    if version is None or (version.code, version.requirements) != (spec.code, spec.requirements):
        version = _fetch_and_lock(spec, folder)
    return UserCode(folder, version)


def _read_version(folder: Folder) -> CodeVersion | None:
    if not folder.exists(VERSION):
        return None
    with refuse_damaged(folder, VERSION):
        return CodeVersion.model_validate_json(folder.read(VERSION))


def _fetch_and_lock(spec: TrainJobSpec, folder: Folder) -> CodeVersion:
    version = CodeVersion(code=spec.code, requirements=spec.requirements)
    folder.delete(VERSION)
    if spec.code is not None:
        DOING.begin("fetching the code")
        archive, commit = _archive_of(spec.code, spec.storage.endpoint if spec.storage is not None else None)
        folder.write(ARCHIVE, archive)
        version = version.model_copy(update={"commit": commit, "sha256": hashlib.sha256(archive).hexdigest()})
    if spec.requirements:
        DOING.begin("resolving packages")
        folder.write(LOCK, lock(spec.requirements))
    folder.write(VERSION, version.model_dump_json(by_alias=True).encode())
    return version


def _archive_of(code: Code, endpoint: str | None) -> tuple[bytes, str | None]:
    """The archive, and the commit if it is from Git."""
    if code.git is not None:
        return fetch(code.git)
    assert code.uri is not None
    parent, _, name = code.uri.rpartition("/")
    archive = Folder(parent or ".", endpoint).read(name)
    expected, found = PurePosixPath(name).name.partition(".")[0], hashlib.sha256(archive).hexdigest()
    if re.fullmatch(r"[0-9a-f]{64}", expected) and found != expected:
        raise UserError(
            f"spec.code.uri: {code.uri} has the SHA-256 digest {found}, not that of its name: submit it again"
        )
    return archive, None


def _unpacked(folder: Folder, sha256: str, cache: Path) -> Path:
    """The folder with the unpacked archive, in `cache`: one for each run, because a function may write files beside its
    module. Several processes may unpack it at once."""
    target = cache / f"code-{hashlib.sha256(f'{folder.uri} {sha256}'.encode()).hexdigest()[:16]}"
    if target.is_dir():
        return target
    archive = folder.read(ARCHIVE)
    if hashlib.sha256(archive).hexdigest() != sha256:
        raise UserError(f"{folder.uri}/{ARCHIVE} is damaged: its digest is not {sha256}; start over with --fresh")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as partial:
        unpack(archive, Path(partial) / "code", "spec.code")
        try:
            (Path(partial) / "code").rename(target)
        except OSError:
            if not target.is_dir():  # the reason is not that another process unpacked it first
                raise
    return target
