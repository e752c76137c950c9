"""Schedules and optimizers take the values that the spec names."""

import pytest
import torch

from trainjob.api import SGD, Adam, AdamW, Optimizer, ReduceOnPlateau, Scheduler, WarmUp
from trainjob.api.training import Constant
from trainjob.worker.optim import build_optimizer, build_scheduler


def _weights() -> list[torch.nn.Parameter]:
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    return [torch.nn.Parameter(torch.ones(3, 2)), frozen]


def _rates(spec: Scheduler, steps: int) -> list[float]:
    optimizer = build_optimizer(Optimizer(sgd=SGD(learning_rate=1.0)), _weights())
    scheduler = build_scheduler(spec, optimizer, steps)
    assert isinstance(scheduler, torch.optim.lr_scheduler.LambdaLR)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return [*rates, optimizer.param_groups[0]["lr"]]


def test_constant_stays_once_it_is_warmed_up():
    rates = _rates(Scheduler(constant=Constant(warmup_fraction=0.25)), steps=8)
    assert rates == pytest.approx([1 / 3, 2 / 3, 1, 1, 1, 1, 1, 1, 1])
    optimizer = build_optimizer(Optimizer(adam=Adam()), _weights())
    assert build_scheduler(Scheduler(constant=Constant()), optimizer, 8) is None


def test_linear_rises_over_the_warm_up_and_falls_to_zero():
    rates = _rates(Scheduler(linear=WarmUp(warmup_fraction=0.25)), steps=8)
    assert rates == pytest.approx([1 / 3, 2 / 3, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0])


def test_cosine_is_half_way_down_in_the_middle():
    rates = _rates(Scheduler(cosine=WarmUp(warmup_fraction=0.0)), steps=10)
    assert rates[0] == pytest.approx(1)
    assert rates[5] == pytest.approx(0.5)
    assert rates[10] == pytest.approx(0)


def test_reduce_on_plateau_waits_for_its_patience():
    optimizer = build_optimizer(Optimizer(adam=Adam(learning_rate=0.1)), _weights())
    scheduler = build_scheduler(Scheduler(reduce_on_plateau=ReduceOnPlateau(factor=0.5, patience=1)), optimizer, 10)
    assert isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
    rates = []
    for loss in (1.0, 1.0, 1.0, 1.0):
        scheduler.step(loss)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1, 0.1, 0.05, 0.05])


@pytest.mark.parametrize(
    ("spec", "kind", "expected"),
    [
        (Optimizer(adam=Adam(weight_decay=0.1)), torch.optim.Adam, {"lr": 1e-3, "weight_decay": 0.1}),
        (Optimizer(adam_w=AdamW(betas=[0.8, 0.9])), torch.optim.AdamW, {"betas": (0.8, 0.9), "weight_decay": 0.01}),
        (Optimizer(sgd=SGD(momentum=0.9, nesterov=True)), torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    ],
)
def test_optimizers_train_what_is_not_frozen(spec: Optimizer, kind: type, expected: dict[str, object]):
    optimizer = build_optimizer(spec, _weights())
    assert type(optimizer) is kind
    (group,) = optimizer.param_groups
    assert len(group["params"]) == 1
    assert {name: group[name] for name in expected} == expected


def test_weight_decay_is_for_matrices():
    norm, linear = torch.nn.LayerNorm(2), torch.nn.Linear(2, 3)
    optimizer = build_optimizer(Optimizer(adam_w=AdamW()), [*norm.parameters(), *linear.parameters()])
    decays = {parameter: group["weight_decay"] for group in optimizer.param_groups for parameter in group["params"]}
    assert decays == {linear.weight: 0.01, linear.bias: 0.0, norm.weight: 0.0, norm.bias: 0.0}
