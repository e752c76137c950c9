"""`spec.tracking`: the experiment trackers that a run is written to."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.api.cluster import ResourceName
from trainjob.schema.base import OneOf, StrictModel
from trainjob.schema.uris import PLAIN_ENDPOINT

ONE_LINE = r"^[^\x00-\x1f\x7f]+$"
WANDB_PROJECT = r"^[^\x00-\x1f\x7f/\\#?%:]+$"
ENTRY_POINT = r"^[A-Za-z0-9_.-]+$"
_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=ONE_LINE)]


class MLflow(StrictModel):
    """An MLflow tracking server."""

    variables: ClassVar[tuple[str, ...]] = (
        "MLFLOW_TRACKING_USERNAME",
        "MLFLOW_TRACKING_PASSWORD",
        "MLFLOW_TRACKING_TOKEN",
    )
    """Environment variables with credentials."""

    uri: Annotated[str, Field(max_length=2048, pattern=PLAIN_ENDPOINT)]
    """URL of the server, without credentials, such as http://mlflow:5000."""
    experiment: _Name | None = None
    """The experiment, created if it does not exist; by default the TrainJob's name."""
    register_: Annotated[_Name | None, Field(alias="register")] = None
    """Name in MLflow's model registry. The finished model is uploaded and becomes a new version of it."""
    secret_name: ResourceName | None = None
    """Secret with MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN; on a laptop, the
    environment provides them."""


class Trackio(StrictModel):
    """A Trackio server, or the local store."""

    variables: ClassVar[tuple[str, ...]] = ("TRACKIO_WRITE_TOKEN",)
    """Environment variables with credentials."""

    uri: Annotated[str | None, Field(max_length=2048, pattern=PLAIN_ENDPOINT)] = None
    """URL of a self-hosted server, without its write token, such as http://trackio:7860. Without it, the run is written
    to the local store, in TRACKIO_DIR or ~/.cache/huggingface/trackio."""
    project: _Name | None = None
    """The project; by default the TrainJob's name."""
    secret_name: ResourceName | None = None
    """Secret with TRACKIO_WRITE_TOKEN; on a laptop, the environment provides it."""


class WandB(StrictModel):
    """Weights & Biases."""

    variables: ClassVar[tuple[str, ...]] = ("WANDB_API_KEY",)
    """Environment variables with credentials."""

    project: Annotated[str | None, Field(min_length=1, max_length=128, pattern=WANDB_PROJECT)] = None
    """The project; by default the TrainJob's name."""
    entity: Annotated[str | None, Field(min_length=1, max_length=200, pattern=ENTRY_POINT)] = None
    """The team or user that owns the project; by default that of the API key."""
    uri: Annotated[str | None, Field(max_length=2048, pattern=PLAIN_ENDPOINT)] = None
    """URL of a self-hosted server; by default Weights & Biases' own, or that of WANDB_BASE_URL."""
    secret_name: ResourceName | None = None
    """Secret with WANDB_API_KEY; on a laptop, the environment or `wandb login` provides it."""


class CustomTracker(StrictModel):
    """A tracker of another Python package."""

    variables: ClassVar[tuple[str, ...]] = ()

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=ENTRY_POINT)]
    """Name of the package's entry point in the group `trainjob.trackers`."""
    options: Annotated[dict[str, Annotated[str, Field(max_length=1000)]], Field(max_length=32)] = {}
    """Options for the tracker. Credentials do not belong here: pass them with `spec.pods.envFrom`."""


class Tracker(OneOf):
    """One experiment tracker."""

    mlflow: MLflow | None = None
    """An MLflow tracking server; needs the package mlflow-skinny (`trainjob[mlflow]`)."""
    trackio: Trackio | None = None
    """Trackio; needs the package trackio (`trainjob[trackio]`)."""
    wandb: WandB | None = None
    """Weights & Biases; needs the package wandb (`trainjob[wandb]`)."""
    custom: CustomTracker | None = None
    """A tracker of another Python package."""

    @property
    def name(self) -> str:
        """`mlflow`, `trackio`, `wandb`, or the name of a custom tracker."""
        return self.custom.name if self.custom is not None else self.chosen

    @property
    def secret(self) -> tuple[str | None, tuple[str, ...]]:
        """The Secret and the environment variables that it provides."""
        settings = getattr(self, self.chosen)
        return getattr(settings, "secret_name", None), settings.variables
