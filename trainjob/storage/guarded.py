"""A folder's filesystem for a library that writes there by itself, as Ray Train does."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from pyarrow import fs

from trainjob.storage.filesystem import open_filesystem
from trainjob.storage.folder import Folder

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _asking(
    method: Callable[Concatenate[fs.SubTreeFileSystem, _Arguments], _Result],
) -> Callable[Concatenate["GuardedFileSystem", _Arguments], _Result]:
    @wraps(method)
    def asking(filesystem: "GuardedFileSystem", *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        filesystem.folder.before_change(filesystem.folder)
        return method(filesystem, *arguments, **named)

    return asking


class GuardedFileSystem(fs.SubTreeFileSystem):
    """The whole filesystem that a folder is on. Each method that changes something calls the folder's `before_change`
    first, which what it raises prevents. Picklable.

    `pyarrow.fs.copy_files` calls no methods from Python: make the folder to copy to first. A handler of PyFileSystem
    would be asked for every file, but on Arrow's own threads, where to list a bucket may wait for ever.
    """

    def __init__(self, folder: Folder) -> None:
        super().__init__("", open_filesystem(folder.uri, folder.endpoint)[0])
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return GuardedFileSystem, (self.folder,)

    create_dir = _asking(fs.SubTreeFileSystem.create_dir)
    delete_dir = _asking(fs.SubTreeFileSystem.delete_dir)
    delete_dir_contents = _asking(fs.SubTreeFileSystem.delete_dir_contents)
    delete_file = _asking(fs.SubTreeFileSystem.delete_file)
    move = _asking(fs.SubTreeFileSystem.move)
    copy_file = _asking(fs.SubTreeFileSystem.copy_file)
    open_output_stream = _asking(fs.SubTreeFileSystem.open_output_stream)
    open_append_stream = _asking(fs.SubTreeFileSystem.open_append_stream)
