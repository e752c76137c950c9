"""A filesystem for libraries that write into a folder themselves, as Ray Train does."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from pyarrow import fs

from trainjob.storage.filesystem import open_filesystem
from trainjob.storage.folder import Folder

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _guarded(
    method: Callable[Concatenate[fs.SubTreeFileSystem, _Arguments], _Result],
) -> Callable[Concatenate["GuardedFileSystem", _Arguments], _Result]:
    @wraps(method)
    def guarded(filesystem: "GuardedFileSystem", *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        filesystem.folder.before_change(filesystem.folder)
        return method(filesystem, *arguments, **named)

    return guarded


class GuardedFileSystem(fs.SubTreeFileSystem):
    """The filesystem that holds a folder. Methods that write or delete call the folder's `before_change` first; if that
    raises, nothing is changed. Picklable.

    `pyarrow.fs.copy_files` bypasses these methods: create the destination folder first. A PyFileSystem handler would be
    called for every file, but on Arrow's own threads, where listing a bucket may hang.
    """

    def __init__(self, folder: Folder) -> None:
        super().__init__("", open_filesystem(folder.uri, folder.endpoint)[0])
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return GuardedFileSystem, (self.folder,)

    create_dir = _guarded(fs.SubTreeFileSystem.create_dir)
    delete_dir = _guarded(fs.SubTreeFileSystem.delete_dir)
    delete_dir_contents = _guarded(fs.SubTreeFileSystem.delete_dir_contents)
    delete_file = _guarded(fs.SubTreeFileSystem.delete_file)
    move = _guarded(fs.SubTreeFileSystem.move)
    copy_file = _guarded(fs.SubTreeFileSystem.copy_file)
    open_output_stream = _guarded(fs.SubTreeFileSystem.open_output_stream)
    open_append_stream = _guarded(fs.SubTreeFileSystem.open_append_stream)
