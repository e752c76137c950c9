"""Fields of a TrainJob that have no effect."""

from collections.abc import Iterator

from trainjob.api.dataset import Cleaning
from trainjob.api.defaults import with_defaults
from trainjob.api.training import Training
from trainjob.api.trainjob import TrainJob
from trainjob.errors import listed, notify

SEED = "seed"
"""The field of `spec.training` by which a function's rows are split."""


def tell_of_unused_fields(job: TrainJob) -> None:
    """Gives a Notice of the fields that are set and have no effect, because the user's own loop trains the model.

    API servers fill in defaults, so it names only other values.
    """
    if job.spec.model.facts.is_users_loop and (unused := list(_unused(job))):
        notify(
            f"{listed(unused)} {'has' if len(unused) == 1 else 'have'} no effect on a function, whose code alone "
            "decides how it trains: pass settings in spec.model.function.config"
        )


def _unused(job: TrainJob) -> Iterator[str]:
    spec = with_defaults(job).spec
    usual = with_defaults(job.model_copy(update={"spec": spec.model_copy(update={"training": Training()})})).spec
    for name in Training.model_fields:
        if name != SEED and getattr(spec.training, name) != getattr(usual.training, name):
            yield f"spec.training.{Training.in_yaml(name)}"
    if spec.checkpoints.every_steps is not None:
        yield "spec.checkpoints.everySteps"
    if spec.dataset is not None and spec.dataset.text is not None:
        yield "spec.dataset.text"
    if spec.dataset is not None and spec.dataset.cleaning != Cleaning():
        yield "spec.dataset.cleaning"
