"""The TrainJob: one YAML document that a laptop and a cluster both take."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from trainjob.api.base import OneOf, StrictModel, depends_on_model, refuse_conflicts
from trainjob.api.baselines import CLASSIFIER_OF, Baselines
from trainjob.api.cluster import CPUs, Deadlines, Duration, Pods, Quantity, ResourceName, seconds
from trainjob.api.dataset import Cleaning, Dataset
from trainjob.api.model import Model, PositiveInt
from trainjob.api.training import CLASSIFIER_METRICS, LANGUAGE_METRICS, Checkpoints, Training
from trainjob.api.tuning import BATCH_SIZE, HEADS, HIDDEN_SIZE, Tuning, candidates, steps_to
from trainjob.api.uris import ENDPOINT, FolderURI

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
        refuse_conflicts(self._conflicts())
        return self

    def _conflicts(self) -> Iterator[tuple[str, str]]:
        """Rules that span fields: (path of the field to change, relative to the spec; what is wrong)."""
        training, count, per_pod = self.training, self.workers.count, self.workers.per_pod
        if per_pod is not None and count % per_pod:
            yield "workers.perPod", f"must divide workers.count ({count} % {per_pod} = {count % per_pod})"
        if (minimum := self.workers.minimum) is not None and minimum > count:
            yield "workers.minimum", f"must not be more than workers.count ({minimum} > {count})"
        if self.workers.minimum is not None and self.tuning is not None:
            yield "workers.minimum", "cannot be set together with tuning, whose trials wait for workers one by one"
        start, total = self.deadlines.start, self.deadlines.total
        if start is not None and total is not None and seconds(start) > seconds(total):
            yield "deadlines.start", f"must not be longer than deadlines.total ({start} > {total})"
        if "batch_size" in training.model_fields_set and (rest := training.batch_size % count):
            yield (
                "training.batchSize",
                f"must be a multiple of workers.count ({training.batch_size} % {count} = {rest})",
            )
        yield from self._conflicts_of_sharding()
        yield from self._conflicts_of_baselines()
        if training.distillation is None and self.dataset is not None and self.dataset.unlabelled is not None:
            yield "dataset.unlabelled", "needs training.distillation, whose teacher labels these rows"
        if training.distillation is not None and self.model.classifier is None:
            yield "training.distillation", "is for textClassifier and imageClassifier"
        yield from self._conflicts_of_tuning()
        yield from self._conflicts_of_conversations()
        if self.model.function is not None:
            if self.dataset is not None and self.dataset.loader == "dataLoader":
                yield "dataset.loader", "a function gets its rows from Ray Data"
            return
        kind = self.model.in_yaml(self.model.chosen)
        if self.dataset is None:
            yield "dataset", f"is required by model.{kind}"
            return
        yield from self._conflicts_of_columns(self.dataset, kind)
        metrics = LANGUAGE_METRICS if self.model.causal_lm is not None else CLASSIFIER_METRICS
        if self.checkpoints.metric not in metrics:
            yield "checkpoints.metric", f"must be one of {', '.join(metrics)} for model.{kind}"

    def _conflicts_of_columns(self, dataset: Dataset, kind: str) -> Iterator[tuple[str, str]]:
        if self.model.image_classifier is not None:
            if dataset.text is not None:
                yield "dataset.text", "is for model.textClassifier and model.causalLM"
            return
        if dataset.text is None and self.model.text_classifier is not None:
            yield "dataset.text", "is required by model.textClassifier: the columns that hold the text"
        if dataset.train.format in ("images", "mnist"):
            yield "dataset.train.format", f"must be csv, jsonl or parquet for model.{kind}"
        if self.model.text_classifier is not None:
            if dataset.label is None:
                yield "dataset.label", "is required by model.textClassifier: the column that holds the label"
            return
        if dataset.text is dataset.prompt is dataset.completion is dataset.messages is None:
            yield "dataset.text", "is required by model.causalLM, or prompt and completion, or messages"
        if dataset.label is not None:
            yield "dataset.label", "is for classifiers"
        if dataset.cleaning != Cleaning():
            yield "dataset.cleaning", "is for model.textClassifier: a language model learns texts as they are"

    def _conflicts_of_conversations(self) -> Iterator[tuple[str, str]]:
        for name in ("prompt", "completion", "messages"):
            if self.model.causal_lm is None and getattr(self.dataset, name, None) is not None:
                yield f"dataset.{name}", "is for model.causalLM"
        language = self.model.causal_lm
        if language is not None and language.decoder and self.dataset is not None and self.dataset.messages is not None:
            yield "dataset.messages", "needs a pretrained model: a tokenizer from scratch has no chat template"

    def _conflicts_of_sharding(self) -> Iterator[tuple[str, str]]:
        training, has_layers = self.training, self.model.text_classifier or self.model.causal_lm
        if training.sharding == "full" and self.workers.count == 1:
            yield "training.sharding", "needs at least 2 workers (workers.count) to share the model"
        if training.sharding != "none" and not has_layers:
            yield "training.sharding", "is for textClassifier and causalLM"
        if training.sharding != "none" and training.compile:
            yield "training.compile", "does not go together with training.sharding"
        if training.cpu_offload and training.sharding == "none":
            yield "training.cpuOffload", "needs training.sharding"
        if training.activation_checkpointing and not has_layers:
            yield "training.activationCheckpointing", "is for textClassifier and causalLM"

    def _conflicts_of_baselines(self) -> Iterator[tuple[str, str]]:
        for name in self.baselines.named if self.baselines is not None else []:
            if self.model.classifier is None:
                yield f"baselines.{name}", "is for textClassifier and imageClassifier"
            elif CLASSIFIER_OF[name] not in ("", to_camel(self.model.chosen)):
                yield f"baselines.{name}", f"is for model.{CLASSIFIER_OF[name]}"

    def _conflicts_of_tuning(self) -> Iterator[tuple[str, str]]:
        tuning = self.tuning
        if tuning is None:
            return
        if self.model.classifier is None:
            yield "tuning", "is for textClassifier and imageClassifier"
        missing = {step.path for path in tuning.tuned for step in steps_to(path) if not self._has(step.path)}
        yield from (
            ("tuning.parameters", f"the spec has no {path} whose fields could be tuned") for path in sorted(missing)
        )
        count = self.workers.count
        for size in candidates(tuning, BATCH_SIZE, 0):
            if size % count:
                yield "tuning.parameters", f"{BATCH_SIZE} must be a multiple of workers.count ({size} % {count})"
        encoder = self.model.text_classifier.encoder if self.model.text_classifier else None
        if encoder is not None:
            for width in candidates(tuning, HIDDEN_SIZE, encoder.hidden_size):
                for heads in candidates(tuning, HEADS, encoder.heads):
                    if width % heads:
                        yield (
                            "tuning.parameters",
                            f"{HIDDEN_SIZE} must be a multiple of every heads ({width} % {heads})",
                        )

    def _has(self, path: str) -> bool:
        """Whether a part is set, by itself or by a default that does not depend on the model."""
        part: Any = self
        for name in path.split("."):
            attribute = _attribute(part, name)
            is_said = not isinstance(part, StrictModel) or attribute in part.model_fields_set
            if not is_said and depends_on_model(type(part).model_fields[attribute]):  # pyrefly: ignore[missing-attribute]
                return False
            part = getattr(part, attribute, None)
        return part is not None


def _attribute(part: Any, field: str) -> str:
    """The attribute that holds the `field` of YAML."""
    fields = type(part).model_fields if isinstance(part, StrictModel) else {}
    return next((name for name, info in fields.items() if (info.alias or name) == field), field)


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
