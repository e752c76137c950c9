"""The TrainJob: one YAML document for laptop and cluster."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from trainjob.api.baselines import Baselines
from trainjob.api.cluster import CONTROLLER, CPUs, Deadlines, Duration, Pods, Quantity, ResourceName
from trainjob.api.code import Code, Requirement
from trainjob.api.dataset import Dataset
from trainjob.api.notify import Receivers
from trainjob.api.spec_rules import SPEC_RULES
from trainjob.api.storage import Storage
from trainjob.api.tracking import Tracker
from trainjob.api.training import Checkpoints, Training
from trainjob.api.tuning import Tuning
from trainjob.kinds.model import Model
from trainjob.schema.base import StrictModel, depends_on_spec
from trainjob.schema.expressions import attribute_of
from trainjob.schema.fields import PositiveInt
from trainjob.schema.rules import FieldRule, RuledModel, RuleGroup


class Workers(StrictModel):
    """The training processes and their resources."""

    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Number of worker processes."""
    minimum: PositiveInt | None = None
    """Elastic training: after losing nodes, training continues with this many workers or more, up to `count`; by
    default exactly `count`. The batch size does not change. Only in a cluster."""
    cpus: CPUs | None = None
    """CPU cores of each worker; on one machine, its cores are divided evenly by default."""
    gpus: Annotated[int, Field(ge=0, le=1)] = 0
    """GPUs of each worker process: 0 or 1. With 0, it trains on the CPU even if there are GPUs."""
    node_pool: ResourceName | None = None
    """The operator's node pool for the workers; by default, any node with enough resources."""
    per_pod: PositiveInt | None = None
    """Workers per pod; by default the number of GPUs of a node in the pool, otherwise 1."""
    memory: Quantity | None = None
    """Memory of each worker, including shared memory."""


class Head(StrictModel):
    """The head pod, which runs the driver and Ray's own processes; only in a cluster."""

    cpus: CPUs | None = None
    """CPU cores; by default the operator's setting."""
    memory: Quantity | None = None
    """Memory; by default the operator's setting."""


class TrainJobSpec(RuledModel):
    """The model, its data, and the training configuration."""

    model: Model
    """The model to train."""
    code: Code | None = None
    """Where a function's code comes from; by default the YAML's folder or, in a cluster, the image and its volumes."""
    requirements: Annotated[list[Requirement], Field(max_length=256)] | None = None
    """Packages that a function needs in addition to the installed ones, such as `einops>=0.8`. Their versions are
    resolved when the run starts, and kept."""
    dataset: Dataset | None = None
    """The training, validation and test data; optional for a function."""
    training: Training = Training()
    """Training hyperparameters."""
    checkpoints: Checkpoints = Checkpoints()
    """Checkpoint selection and retention."""
    tuning: Tuning | None = None
    """Trains several models with different hyperparameters and keeps the best."""
    baselines: Baselines | None = None
    """Baselines to compare the trained model with; `{}` for none. By default, models are compared with the simple
    baselines of their kind, such as the most frequent class or the mean, and a linear model or boosted trees; language
    models and functions have none."""
    workers: Workers = Workers()
    """The training processes. They can be changed; the change takes effect at the next attempt, or when a suspended job
    resumes."""
    head: Head = Head()
    """The head pod, which runs the driver and Ray's own processes; only in a cluster."""
    storage: Storage | None = None
    """The storage of the run. By default, the folder `runs` on a laptop, and the administrator's default in a
    cluster."""
    tracking: Annotated[list[Tracker], Field(max_length=8)] = []
    """Experiment trackers that the run is written to, each at most once. Training neither waits
    for them nor fails because of them."""
    notify: Receivers | None = None
    """Receivers of a notification when the job ends, is interrupted or waits too long; by default the operator's
    setting. It can be changed. Only in a cluster."""
    managed_by: Annotated[str, Field(max_length=63, pattern=CONTROLLER)] | None = None
    """Controller of the job, such as `kueue.x-k8s.io/multikueue`: if it is not `trainjob.dev/operator`, the operator
    leaves the job alone. Only in a cluster."""
    retries: Annotated[int, Field(ge=0, le=1000)] = 0
    """How often a failed run is restarted; it resumes from its latest checkpoint."""
    pods: Pods = Pods()
    """Additional settings of the job's pods; only in a cluster."""
    deadlines: Deadlines = Deadlines()
    """Time limits of the job; only in a cluster."""
    ttl_after_finished: Duration | None = None
    """Time from the job's end until the TrainJob is deleted; by default never. Its storage stays. Only in a cluster. If
    Git or a chart manages the TrainJob, it would be created and trained again: use `rayJobTTLAfterFinished` instead."""
    ray_job_ttl_after_finished: Annotated[Duration | None, Field(alias="rayJobTTLAfterFinished")] = None
    """Time from the job's end until the RayJob is deleted, with its remaining pods and their logs. The TrainJob and its
    status stay. By default, the RayJob stays as long as the TrainJob. Only in a cluster."""
    suspend: bool = False
    """Whether the job is suspended: it has no pods until this is false, and then resumes from its latest checkpoint."""
    cancel: bool = False
    """Whether to end the job for good, after a last checkpoint. Its phase is then Failed, with the reason Cancelled.
    Only in a cluster."""

    @property
    def worker_slots(self) -> int:
        """Worker slots of the job: the workers of all trials that run at once."""
        return self.workers.count * (self.tuning.parallel if self.tuning is not None else 1)

    @property
    def unit_of_errors(self) -> str:
        """The unit of the metrics that `Facts.errors` names, after "in"; empty where there are none."""
        if self.dataset is None or not self.model.facts.errors:
            return ""
        return f"the unit of {self.dataset.label}" if self.dataset.label else "standard deviations"

    @classmethod
    def rules(cls) -> tuple[FieldRule | RuleGroup, ...]:
        return SPEC_RULES

    def has_part(self, path: str) -> bool:
        """Whether a field is set, explicitly or by a default that does not depend on other fields."""
        part: Any = self
        for name in path.split("."):
            attribute = attribute_of(part, name) if isinstance(part, StrictModel) else name
            is_set = not isinstance(part, StrictModel) or attribute in part.model_fields_set
            if not is_set and depends_on_spec(type(part).model_fields[attribute]):  # pyrefly: ignore[missing-attribute]
                return False
            part = getattr(part, attribute, None)
        return part is not None


class Metadata(StrictModel):
    """Kubernetes' own metadata; fields added by the cluster are accepted and ignored."""

    model_config = ConfigDict(extra="ignore")

    name: ResourceName
    """Name of the TrainJob and, on a laptop, of the run's folder."""
    namespace: str | None = None
    """Namespace."""
    uid: str | None = None
    """Set by the cluster; it distinguishes runs of the same name in storage."""
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
    """The model, its data, and the training configuration."""
    status: dict[str, Any] | None = None
    """Written by the cluster; ignored in a file."""
