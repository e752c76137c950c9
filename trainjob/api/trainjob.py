"""The TrainJob: one YAML document that a laptop and a cluster both take."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from trainjob.api.baselines import Baselines
from trainjob.api.cluster import CPUs, Deadlines, Duration, Pods, Quantity, ResourceName
from trainjob.api.dataset import Dataset
from trainjob.api.expressions import attribute_of
from trainjob.api.model import Model
from trainjob.api.training import Checkpoints, Training
from trainjob.api.tuning import Tuning
from trainjob.schema.base import OneOf, StrictModel, depends_on_model, refuse_conflicts
from trainjob.schema.fields import PositiveInt
from trainjob.schema.uris import ENDPOINT, FolderURI

GROUP, VERSION, KIND, PLURAL = "trainjob.dev", "v1alpha1", "TrainJob", "trainjobs"
"""What Kubernetes calls the type."""


class Workers(StrictModel):
    """The processes that train, and what each of them gets."""

    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Worker processes."""
    minimum: PositiveInt | None = None
    """With how many of them training goes on where nodes are lost, until there is room for more; by default with no
    fewer than `count`. A batch keeps its rows. Only in a cluster: on one machine all of them train."""
    cpus: CPUs | None = None
    """CPU cores of each worker; on one machine, by default its cores are shared out evenly."""
    gpus: Annotated[int, Field(ge=0, le=1)] = 0
    """GPUs of each worker process: 0 or 1. With 0 it trains on the CPU, whatever GPUs there are."""
    node_pool: ResourceName | None = None
    """The operator's node pool that the workers run on; by default, any node with room."""
    per_pod: PositiveInt | None = None
    """Workers that share a pod; by default as many as a node of the pool has GPUs, otherwise 1."""
    memory: Quantity | None = None
    """Memory of each worker; shared memory is taken out of it."""


class Head(StrictModel):
    """The head pod, where the driver and Ray's own processes run; only in a cluster."""

    cpus: CPUs | None = None
    """CPU cores; by default the operator's setting."""
    memory: Quantity | None = None
    """Memory; by default the operator's setting."""


class Storage(OneOf):
    """Where a run's checkpoints, model, metrics and report are kept: `uri` or `persistentVolumeClaim`."""

    choices: ClassVar[tuple[str, ...]] = ("uri", "persistent_volume_claim")

    uri: FolderURI | None = None
    """A folder: a path (relative to this YAML), `s3://` or `gs://`. The run's own folder is made inside it."""
    persistent_volume_claim: ResourceName | None = None
    """A PersistentVolumeClaim that all of a job's pods can mount at once (ReadWriteMany); only in a cluster."""
    endpoint: Annotated[str, Field(pattern=ENDPOINT)] | None = None
    """An S3 server other than Amazon's, for storage and dataset alike."""
    secret_name: ResourceName | None = None
    """Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; on a laptop these come from the environment."""


class TrainJobSpec(StrictModel):
    """What to train and on what."""

    model: Model
    """What is trained."""
    dataset: Dataset | None = None
    """What the model learns from; a function may do without."""
    training: Training = Training()
    """How the model is trained."""
    checkpoints: Checkpoints = Checkpoints()
    """What is kept while training."""
    tuning: Tuning | None = None
    """Trains several times with other hyperparameters, and keeps the best model."""
    baselines: Baselines | None = None
    """What the trained model is compared with; `{}`: nothing. By default the most frequent class, and logistic
    regression on the TF-IDF of texts or on the pixels of images; for other models there are none."""
    workers: Workers = Workers()
    """The processes that train. They may change: the next attempt has the new ones, or a job that was
    suspended."""
    head: Head = Head()
    """The head pod, where the driver and Ray's own processes run; only in a cluster."""
    storage: Storage | None = None
    """Where the run is kept. By default: on a laptop in the folder `runs`; in a cluster where the operator's
    administrator says."""
    retries: Annotated[int, Field(ge=0, le=1000)] = 0
    """How often a failed run is started again; it continues from its latest checkpoint."""
    pods: Pods = Pods()
    """What the job's pods have besides; only in a cluster."""
    deadlines: Deadlines = Deadlines()
    """How long the job may take; only in a cluster."""
    ttl_after_finished: Duration | None = None
    """When the TrainJob is deleted after its end; by default never. Its storage stays. Only in a cluster. Where Git or
    a chart holds the TrainJob, it would be created again, and train again: set `rayJobTTLAfterFinished` there."""
    ray_job_ttl_after_finished: Annotated[Duration | None, Field(alias="rayJobTTLAfterFinished")] = None
    """When the RayJob is deleted after the job's end, and with it the pods that are left and their logs. The TrainJob
    stays, with its status. By default the RayJob stays as long as the TrainJob. Only in a cluster."""
    suspend: bool = False
    """Whether the job waits, without pods, until this is false; it continues from its latest checkpoint."""

    @property
    def places(self) -> int:
        """Workers that there is room for: those of all trials that run at once."""
        return self.workers.count * (self.tuning.parallel if self.tuning is not None else 1)

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        from trainjob.api.spec_rules import conflicts_of  # which builds rules on this class's fields

        refuse_conflicts(conflicts_of(self))
        return self

    def has_part(self, path: str) -> bool:
        """Whether a part is set, by itself or by a default that does not depend on the model."""
        part: Any = self
        for name in path.split("."):
            attribute = attribute_of(part, name) if isinstance(part, StrictModel) else name
            is_said = not isinstance(part, StrictModel) or attribute in part.model_fields_set
            if not is_said and depends_on_model(type(part).model_fields[attribute]):  # pyrefly: ignore[missing-attribute]
                return False
            part = getattr(part, attribute, None)
        return part is not None


class Metadata(StrictModel):
    """Kubernetes' own metadata; what the cluster adds to it is accepted and ignored."""

    model_config = ConfigDict(extra="ignore")

    name: ResourceName
    """Name of the TrainJob and, on a laptop, of the run's folder."""
    namespace: str | None = None
    """Namespace."""
    uid: str | None = None
    """Given by the cluster; it tells runs of the same name apart in storage."""
    labels: dict[str, str] = {}
    """Labels."""
    annotations: dict[str, str] = {}
    """Annotations."""


class TrainJob(StrictModel):
    """One training run."""

    api_version: Literal["trainjob.dev/v1alpha1"]
    """Version of this type."""
    kind: Literal["TrainJob"]
    """Always TrainJob."""
    metadata: Metadata
    """Name, labels, annotations."""
    spec: TrainJobSpec
    """What to train and on what."""
    status: dict[str, Any] | None = None
    """Written by the cluster; ignored in a file."""
