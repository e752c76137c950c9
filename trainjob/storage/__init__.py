"""Files on local disk, `s3://`, `gs://` and, to be read, the Hugging Face hub."""

from trainjob.storage.concurrently import concurrently
from trainjob.storage.filesystem import open_filesystem, storage_errors
from trainjob.storage.folder import Folder
from trainjob.storage.guarded import GuardedFileSystem

__all__ = ["Folder", "GuardedFileSystem", "concurrently", "open_filesystem", "storage_errors"]
