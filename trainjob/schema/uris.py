"""Regular expressions of paths and URIs in a TrainJob: only supported schemes, and no line breaks.

No pattern of a TrainJob has a class such as \\s or \\w: pydantic's are Unicode's, those of API servers are ASCII's.
"""

from typing import Annotated

from pydantic import Field

_CHARACTER = r"[^\x00-\x1f\x7f]"
_STEP = r"[^/\x00-\x1f\x7f]*[^/:\x00-\x1f\x7f]"
"""The first part of a relative path; it cannot end in a colon, as a scheme does."""
_PATH = rf"({_STEP})?/{_CHARACTER}*|{_STEP}"
_BUCKET = rf"(s3|gs)://[A-Za-z0-9][A-Za-z0-9_.-]*(/{_CHARACTER}*)?"
_HUB = rf"hf://datasets/[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+(@[A-Za-z0-9_.%-]+)?(/{_CHARACTER}*)?"
"""A data set on the Hugging Face hub, optionally at a branch, tag or commit: `@refs%2Fconvert%2Fparquet`."""
_WEB = r"https?://[^/@\x00-\x20\x7f]+(/[^\x00-\x20\x7f]*)?"
"""The URL without user and password, which would be stored with it."""

PATH = rf"^({_PATH})$"
MODEL = rf"^({_PATH}|{_BUCKET})$"
FOLDER_URI = rf"^({_PATH}|{_BUCKET}|file:///{_CHARACTER}*)$"
DATA_URI = rf"^({_PATH}|{_BUCKET}|file:///{_CHARACTER}*|{_HUB}|{_WEB})$"
ARCHIVE_URI = rf"^({_PATH}|{_BUCKET}|file:///{_CHARACTER}*)\.(tar\.gz|tgz)$"
GIT_URL = rf"^{_WEB}$"
ENDPOINT = rf"^{_WEB}$"
PLAIN_ENDPOINT = r"^https?://[^/@?#\x00-\x20\x7f]+(/[^@?#\x00-\x20\x7f]*)?$"
"""The URL without user, password and query, any of which may hold credentials."""

DataURI = Annotated[str, Field(min_length=1, max_length=4096, pattern=DATA_URI)]
FolderURI = Annotated[str, Field(min_length=1, max_length=4096, pattern=FOLDER_URI)]
