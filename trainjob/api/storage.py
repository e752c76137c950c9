"""`spec.storage`: where the runs are kept."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.api.cluster import ResourceName
from trainjob.schema.base import OneOf
from trainjob.schema.uris import ENDPOINT, FolderURI


class Storage(OneOf):
    """The storage of a run's checkpoints, model, metrics and report: `uri` or `persistentVolumeClaim`."""

    choices: ClassVar[tuple[str, ...]] = ("uri", "persistent_volume_claim")

    uri: FolderURI | None = None
    """A folder: a path (relative to this YAML), `s3://` or `gs://`. The run's own folder is created inside it."""
    persistent_volume_claim: ResourceName | None = None
    """A PersistentVolumeClaim that all of a job's pods can mount at once (ReadWriteMany); only in a cluster."""
    endpoint: Annotated[str, Field(pattern=ENDPOINT)] | None = None
    """An S3 server other than Amazon's, for both storage and dataset."""
    secret_name: ResourceName | None = None
    """Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; on a laptop, the environment provides them."""
