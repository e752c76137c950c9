"""Files on a volume that a pod serves: a read-only filesystem."""

import errno
import json
from typing import Any, Protocol
from urllib.parse import urlencode

from fsspec import AbstractFileSystem
from fsspec.spec import AbstractBufferedFile
from pyarrow import fs

from trainjob.errors import StorageUnreachable
from trainjob.storage.filesystem import FSSpecFiles

BLOCK_BYTES = 8 * 2**20


class Requests(Protocol):
    """A pool of HTTP connections to the server of `trainjob.cluster.file_server`, as urllib3 has it."""

    def request(self, method: str, url: str, /, *, retries: bool) -> Any: ...


def volume_filesystem(requests: Requests, prefix: str) -> fs.FileSystem:
    """The files below `prefix`, the path of the server's folder."""
    return fs.PyFileSystem(FSSpecFiles(_VolumeFiles(requests, prefix, skip_instance_cache=True)))


class _VolumeFiles(AbstractFileSystem):
    def __init__(self, requests: Requests, prefix: str, **options: Any) -> None:
        super().__init__(**options)
        self._requests, self._prefix = requests, prefix

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return json.loads(self._get("info", path)) | {"name": path}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        entries = json.loads(self._get("list", path))
        found = [entry | {"name": f"{path.rstrip('/')}/{entry['name']}"} for entry in entries]
        return found if detail else [entry["name"] for entry in found]

    def cat_range(self, path: str, start: int, end: int) -> bytes:
        return self._get("read", path, start=start, end=end)

    def _open(self, path: str, mode: str = "rb", *_: Any, **__: Any) -> "_VolumeFile":
        if mode != "rb":
            raise OSError("the run's volume can only be read from here: pull the run to change it")
        return _VolumeFile(self, path, block_size=BLOCK_BYTES, cache_type="none", size=self.info(path)["size"])

    def _get(self, action: str, path: str, **query: int) -> bytes:
        from urllib3.exceptions import HTTPError

        relative = path[len(self._prefix) :].lstrip("/")
        try:
            answer = self._requests.request("GET", f"/{action}?{urlencode({'path': relative, **query})}", retries=False)
        except HTTPError as error:
            raise StorageUnreachable(f"{path}: the pod that reads the volume does not answer ({error})") from None
        if answer.status == 404:
            raise FileNotFoundError(errno.ENOENT, "no such file or folder")
        if answer.status != 200:
            raise PermissionError(errno.EACCES, "Permission denied")
        return answer.data


class _VolumeFile(AbstractBufferedFile):
    fs: _VolumeFiles

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.cat_range(self.path, start, end)
