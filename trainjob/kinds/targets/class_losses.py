"""The loss of each sample, so that the mean over any number of workers is exact."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor
from torch.nn import functional

from trainjob.api import ClassWeights, Loss, Model
from trainjob.api.training import Distillation
from trainjob.errors import UserError
from trainjob.kinds.classifier import Classifier
from trainjob.kinds.target import Target

if TYPE_CHECKING:
    from trainjob.kinds.targets.one_class import OneClass

SampleLosses = Callable[[Tensor, Tensor], Tensor]
"""The loss of each row, from logits [n, classes] and labels [n, ...], float32 [n]."""


def sample_losses(model: Model, target: Target) -> SampleLosses:
    """The loss function: from logits [n, C] and labels [n] to one loss for each sample, float32 [n].

    Each sample's loss is multiplied by the weight of its class. Binary cross-entropy is the mean over the C sigmoids.
    Raises UserError if the class weights do not name exactly the classes of the data.
    """
    spec = classifier_of(model)
    path = f"spec.model.{model.facts.field}.classWeights.values"
    weights = class_weights(spec.class_weights, target, path) if spec.class_weights else None
    unweighted = cross_entropy if spec.loss.cross_entropy is not None else binary_cross_entropy
    if weights is None:
        return unweighted
    on = cache(weights.to)  # copied to a device once
    return lambda logits, labels: unweighted(logits, labels) * on(labels.device)[labels]


def distilled_losses(
    loss: Loss, distillation: Distillation, losses: SampleLosses
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Returns a function of logits [n, C], labels [n] or [n, C] and the teacher's logits [n, C]: the loss of each
    sample, float32 [n]. `loss` says whether the logits are those of a softmax or of sigmoids.

    The loss is `weight` times the divergence of the model from the teacher, both at the same temperature, plus
    1 - `weight` times the sample's loss from `losses`. A row without a label (-1) has the first term only, which is
    multiplied by the square of the temperature, because its gradients are smaller by that factor (Hinton, Vinyals and
    Dean, 2015, https://arxiv.org/abs/1503.02531, section 2).
    """
    temperature, weight = distillation.temperature, distillation.weight
    distances = _divergence if loss.cross_entropy is not None else _binary_divergence

    def both(logits: Tensor, labels: Tensor, teacher: Tensor) -> Tensor:
        soft = weight * temperature**2 * distances(logits.float() / temperature, teacher.float() / temperature)
        hard = (1 - weight) * losses(logits, labels.clamp(min=0))
        return soft + torch.where(labels.reshape(len(labels), -1)[:, 0] < 0, 0.0, hard)

    return both


def classifier_of(model: Model) -> Classifier:
    if model.classifier is None:
        raise ValueError(f"model.{model.facts.field} learns no classes")
    return model.classifier


def _divergence(logits: Tensor, teacher: Tensor) -> Tensor:
    """The Kullback-Leibler divergence of the softmax distributions, float32 [n]."""
    return functional.kl_div(
        logits.log_softmax(dim=1), teacher.log_softmax(dim=1), reduction="none", log_target=True
    ).sum(dim=1)


def _binary_divergence(logits: Tensor, teacher: Tensor) -> Tensor:
    """The mean Kullback-Leibler divergence over the C sigmoids, float32 [n]."""
    targets = teacher.sigmoid()
    entropy = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    least = functional.binary_cross_entropy_with_logits(teacher, targets, reduction="none")
    return (entropy - least).mean(dim=1)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(logits.float(), labels, reduction="none")


def binary_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    targets = functional.one_hot(labels, logits.shape[1]).float()
    return functional.binary_cross_entropy_with_logits(logits.float(), targets, reduction="none").mean(dim=1)


def class_weights(spec: ClassWeights, target: Target, path: str) -> Tensor:
    """One weight for each class, float32 [C]; `path` is the field that an error message names."""
    classes = target.classes
    if spec.values is None:
        counts = torch.tensor(cast("OneClass", target).class_counts, dtype=torch.float64)
        return (counts.sum() / (len(classes) * counts)).float()
    problems = [_unknown(name, classes) for name in spec.values if name not in classes]
    problems += [f"class {name!r} has no weight" for name in classes if name not in spec.values]
    if problems:
        raise UserError(f"{path}: {'; '.join(problems)}. The classes are: {', '.join(classes)}")
    return torch.tensor([spec.values[name] for name in classes])


def _unknown(name: str, classes: list[str]) -> str:
    message = f"there is no class {name!r}"
    if name in ("true", "false"):
        return f"{message} (YAML reads yes, no, on and off as true and false: put them in quotes)"
    close = get_close_matches(name, classes, n=1)
    return message + (f", did you mean {close[0]!r}?" if close else "")
