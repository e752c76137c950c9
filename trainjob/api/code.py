"""`spec.code` and `spec.requirements`: a function's code and packages, without an image of its own."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.api.cluster import ResourceName
from trainjob.schema.base import OneOf, StrictModel
from trainjob.schema.uris import ARCHIVE_URI, GIT_URL

REF = r"^[A-Za-z0-9_][A-Za-z0-9_./+@-]*$"
SUBFOLDER = r"^[A-Za-z0-9_.][A-Za-z0-9_. -]*(/[A-Za-z0-9_. -]+)*$"
REQUIREMENT = r"^[A-Za-z0-9]+([^ \x00-\x1f\x7f]| +[^ \x00-\x1f\x7f-])*$"

Requirement = Annotated[str, Field(min_length=1, max_length=512, pattern=REQUIREMENT)]
"""A package as in requirements.txt, without options."""
GIT_USERNAME, GIT_PASSWORD = "TRAINJOB_GIT_USERNAME", "TRAINJOB_GIT_PASSWORD"
"""Environment variables with the credentials for the Git server."""


class Git(StrictModel):
    """A Git repository."""

    url: Annotated[str, Field(min_length=1, max_length=4096, pattern=GIT_URL)]
    """`https://` URL, without user and password."""
    ref: Annotated[str, Field(max_length=255, pattern=REF)] = "HEAD"
    """Branch, tag or full commit hash. The run keeps the commit that it starts with."""
    path: Annotated[str, Field(max_length=1024, pattern=SUBFOLDER)] | None = None
    """Folder in the repository that contains the function's module; by default the repository itself."""
    secret_name: ResourceName | None = None
    """Secret of type `kubernetes.io/basic-auth` with `username` and `password`, such as an access token; on a laptop,
    TRAINJOB_GIT_USERNAME and TRAINJOB_GIT_PASSWORD in the environment provide them."""


class Code(OneOf):
    """The function's code: `uri` or `git`."""

    choices: ClassVar[tuple[str, ...]] = ("uri", "git")

    uri: Annotated[str, Field(min_length=1, max_length=4096, pattern=ARCHIVE_URI)] | None = None
    """A `.tar.gz` archive: a path, `s3://`, `gs://`. If its name is a SHA-256 digest, the content must have it."""
    git: Git | None = None
    """A Git repository."""
