"""Code as a `.tar.gz` archive: packs a folder, and unpacks an archive that may come from anywhere."""

import gzip
import io
import os
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from trainjob.code.git import git
from trainjob.errors import UserError, listed

MAX_MIB = 64
"""The largest folder that is packed, in MiB. Data and models belong into storage."""
_SECRET_NAMES = re.compile(
    r"\.env(\..+)?|\.netrc|\.pypirc|\.npmrc|\.git-credentials|kubeconfig|credentials(\.json)?|id_(rsa|dsa|ecdsa|ed25519)"
    r"|.+\.(pem|key|p12|pfx|jks|keystore)|.*service[-_]?account.*\.json"
)
_SECRET_CONTENT = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bhf_[A-Za-z0-9]{34}\b")
_TEMPLATES = (".example", ".sample", ".template")


def pack(folder: Path) -> bytes:
    """The folder as an archive that depends only on the files' names, contents and permission to be executed. Leaves
    out files that a .gitignore excludes.

    Raises UserError for a folder that is too large, has no files, or has files that look like secrets.
    """
    names = _files(folder)
    if not names:
        raise UserError(f"{folder} has no files to submit")
    size = sum((folder / name).lstat().st_size for name in names)
    if size > MAX_MIB * 2**20:
        largest = sorted(names, key=lambda name: (folder / name).lstat().st_size, reverse=True)
        raise UserError(
            f"{folder} has {size / 2**20:,.0f} MiB of files, and at most {MAX_MIB} can be submitted as code; the "
            f"largest are {listed(largest)}: list them in a .gitignore, and put data into storage"
        )
    if found := [name for name in names if _looks_secret(folder / name)]:
        raise UserError(
            f"{folder} has files that look like secrets: {listed(found)}. Nothing was uploaded: list them in a "
            ".gitignore, and use a Secret in spec.pods.env or envFrom"
        )
    if outside := _leading_out(folder, [folder / name for name in names if (folder / name).is_symlink()]):
        raise UserError(
            f"{folder} has links that lead out of it: {listed(outside)}. Nothing was uploaded: copy the files"
        )
    content = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in names:
            archive.add(folder / name, name, recursive=False, filter=_without_traces)
    return content.getvalue()


def unpack(archive: bytes, target: Path, source: str) -> None:
    """Unpacks an archive from `source` into the new folder `target`: files first, and then links, so that no file is
    written through a link. `tarfile` has a filter for this from Python 3.11.4 on.

    Raises UserError if it is not a `.tar.gz`, or if a path leads out of `target`.
    """
    target.mkdir()
    links: dict[Path, str] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as members:
            for member in members:
                path = _path_in(target, member.name, source)
                path.parent.mkdir(parents=True, exist_ok=True)
                if member.isdir():
                    path.mkdir(exist_ok=True)
                elif member.issym():
                    links[path] = member.linkname
                elif member.isreg():
                    content = members.extractfile(member)
                    assert content is not None, "a regular file has content"
                    path.write_bytes(content.read())
                    path.chmod(_mode(member))
                else:
                    raise UserError(f"{source} is refused: {member.name} is not a file, folder or symbolic link")
        for path, linked in links.items():
            path.symlink_to(linked)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UserError(f"{source} cannot be unpacked as .tar.gz: {error}") from None
    if outside := _leading_out(target, links):
        raise UserError(f"{source} is refused: these links lead out of its folder: {listed(outside)}")


def _path_in(target: Path, name: str, source: str) -> Path:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise UserError(f"{source} is refused: {name} is outside of its folder")
    return target / path


def _leading_out(folder: Path, links: Iterable[Path]) -> list[str]:
    """The links whose target is not in the folder."""
    inside = Path(os.path.realpath(folder))
    return [str(link.relative_to(folder)) for link in links if not Path(os.path.realpath(link)).is_relative_to(inside)]


def _files(folder: Path) -> list[str]:
    """The folder's files and links, relative to it, in order; those of nested repositories, too."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    with tempfile.TemporaryDirectory() as repository:
        if git("rev-parse", "--is-inside-work-tree", folder=folder, check=False).strip() == b"true":
            options = []
        else:  # Git reads .gitignore files only in a repository
            git("init", "--quiet", "--bare", repository, folder=folder)
            options = [f"--git-dir={repository}", "--work-tree=."]
        listing = [*options, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = sorted({name for name in git(*listing, folder=folder).decode().split("\0") if name})
    nested = [name for name in names if (folder / name).is_dir() and not (folder / name).is_symlink()]
    inside = [f"{name.rstrip('/')}/{each}" for name in nested for each in _files(folder / name)]
    files = [name for name in names if (folder / name).is_file() or (folder / name).is_symlink()]
    return sorted([*files, *inside])


def _looks_secret(path: Path) -> bool:
    if path.name.endswith(_TEMPLATES):
        return False
    if _SECRET_NAMES.fullmatch(path.name):
        return True
    with suppress(OSError):
        return bool(_SECRET_CONTENT.search(path.read_bytes()))
    return False


def _without_traces(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Removes owner and time, so that equal files have equal archives."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = _mode(member)
    return member


def _mode(member: tarfile.TarInfo) -> int:
    return 0o755 if member.mode & 0o100 else 0o644
