import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from trainjob.api import Model
from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.kinds.targets.class_losses import sample_losses

MakeModel = Callable[..., Model]

LOGITS = torch.tensor([[2.0, 0.0, -1.0], [0.0, 0.0, 0.0], [-3.0, 1.0, 4.0]])
LABELS = torch.tensor([0, 1, 1])


def losses(model: Model, preprocessor: Preprocessor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return sample_losses(model, preprocessor.target)(LOGITS.to(dtype), LABELS)


def test_cross_entropy_of_each_sample(text_model: MakeModel, text_preprocessor: Preprocessor) -> None:
    found = losses(text_model(), text_preprocessor)
    expected = [math.log(1 + math.exp(-2) + math.exp(-3)), math.log(3), math.log(math.exp(-4) + 1 + math.exp(3))]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_binary_cross_entropy_is_the_mean_over_the_classes(
    text_model: MakeModel, text_preprocessor: Preprocessor
) -> None:
    found = losses(text_model(loss={"binaryCrossEntropy": {}}), text_preprocessor)
    first = (math.log(1 + math.exp(-2)) + math.log(2) + math.log(1 + math.exp(-1))) / 3
    assert found[0].item() == pytest.approx(first)
    assert found[1].item() == pytest.approx(math.log(2))


def test_balanced_weights_are_inverse_to_the_frequency(text_model: MakeModel, text_preprocessor: Preprocessor) -> None:
    """The training part has 10, 30 and 60 rows."""
    weighted = losses(text_model(classWeights={"balanced": {}}), text_preprocessor)
    weights = weighted / losses(text_model(), text_preprocessor)
    torch.testing.assert_close(weights, torch.tensor([100 / (3 * 10), 100 / (3 * 30), 100 / (3 * 30)]))


@pytest.mark.parametrize("loss", ["crossEntropy", "binaryCrossEntropy"])
def test_given_weights_go_by_name(loss: str, text_model: MakeModel, text_preprocessor: Preprocessor) -> None:
    spec: dict[str, Any] = {"loss": {loss: {}}}
    weights = {"values": {"dog": 7.0, "cat": 0.5, "bird": 2.0}}
    weighted = losses(text_model(**spec, classWeights=weights), text_preprocessor)
    torch.testing.assert_close(weighted, losses(text_model(**spec), text_preprocessor) * torch.tensor([2.0, 0.5, 0.5]))


def test_weighted_losses_agree_with_torch(text_model: MakeModel, text_preprocessor: Preprocessor) -> None:
    values = {"dog": 1.0, "cat": 2.0, "bird": 3.0}
    found = losses(text_model(classWeights={"values": values}), text_preprocessor)
    weight = torch.tensor([3.0, 2.0, 1.0])
    torch.testing.assert_close(found, functional.cross_entropy(LOGITS, LABELS, weight, reduction="none"))


@pytest.mark.parametrize("loss", ["crossEntropy", "binaryCrossEntropy"])
def test_losses_of_bfloat16_logits_are_float32(
    loss: str, text_model: MakeModel, text_preprocessor: Preprocessor
) -> None:
    model = text_model(loss={loss: {}}, classWeights={"balanced": {}})
    assert losses(model, text_preprocessor, torch.bfloat16).dtype == torch.float32


def test_a_name_that_yaml_reads_as_a_truth_value(text_model: MakeModel, text_preprocessor: Preprocessor) -> None:
    with pytest.raises(UserError, match=r"there is no class 'true' \(YAML reads yes, no, on and off as true and false"):
        sample_losses(text_model(classWeights={"values": {"true": 1.0}}), text_preprocessor.target)


def test_class_names_that_do_not_fit_are_all_named(text_model: MakeModel, text_preprocessor: Preprocessor) -> None:
    model = text_model(classWeights={"values": {"dogs": 1.0, "bird": 1.0, "zebra": 1.0}})
    with pytest.raises(UserError) as error:
        sample_losses(model, text_preprocessor.target)
    assert str(error.value) == (
        "spec.model.textClassifier.classWeights.values: there is no class 'dogs', did you mean 'dog'?; "
        "there is no class 'zebra'; class 'cat' has no weight; class 'dog' has no weight. "
        "The classes are: bird, cat, dog"
    )
