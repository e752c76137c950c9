"""The losses of tokens, taken block by block, are those that PyTorch computes of all at once."""

import pytest
import torch

from trainjob.data.batches.examples import IGNORED
from trainjob.kinds.causal_lm import token_losses as module
from trainjob.kinds.causal_lm.token_losses import losses_to_compile, token_losses

ROWS, LENGTH, TOKENS = 2, 7, 11


@pytest.fixture(params=[1, 3 * TOKENS, 10**6], ids=["a row", "three rows", "all rows"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CPU_BLOCK", request.param)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 1e-2), (torch.float16, 1e-3)])
def test_losses_and_gradients(kind: torch.dtype, tolerance: float):
    torch.manual_seed(0)
    labels = torch.randint(TOKENS, (ROWS, LENGTH))
    labels[0, 2:5] = IGNORED
    weights = torch.rand(ROWS * LENGTH)
    found = torch.randn(ROWS, LENGTH, TOKENS).to(kind).requires_grad_()
    wanted = found.detach().clone().requires_grad_()
    losses, right = token_losses(found, labels), losses_to_compile(wanted, labels)
    assert losses.dtype == torch.float32
    torch.testing.assert_close(losses, right, rtol=0, atol=1e-5)
    assert losses[2:5].tolist() == [0, 0, 0]
    (losses * weights).sum().backward()
    (right * weights).sum().backward()
    assert found.grad is not None
    assert found.grad.dtype == kind
    assert not found.grad[0, 2:5].any()
    torch.testing.assert_close(found.grad, wanted.grad, rtol=0, atol=tolerance)


def test_large_logits_stay_finite():
    logits = torch.tensor([[[1e4, -1e4, 0.0]]], requires_grad=True)
    losses = token_losses(logits, torch.tensor([[1]]))
    losses.sum().backward()
    assert losses.tolist() == [2e4]
    assert logits.grad is not None
    assert logits.grad.tolist() == [[[1.0, -1.0, 0.0]]]


def test_where_nothing_is_learned_there_is_no_loss():
    logits = torch.randn(1, 3, 4, requires_grad=True)
    losses = token_losses(logits, torch.full((1, 3), IGNORED))
    losses.sum().backward()
    assert losses.tolist() == [0, 0, 0]
    assert logits.grad is not None
    assert not logits.grad.any()


def test_a_second_backward_pass_is_an_error():
    logits = torch.randn(1, 3, 4, requires_grad=True)
    losses = token_losses(logits * 2, torch.tensor([[1, 2, 3]])).sum()
    losses.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        losses.backward()


def test_an_output_layer_that_needs_its_output_is_an_error():
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        token_losses(torch.randn(1, 3, 4, requires_grad=True).tanh(), torch.tensor([[1, 2, 3]])).sum().backward()


def test_scored_logits_stay_as_they_are():
    logits = torch.randn(1, 3, 4)
    before = logits.clone()
    token_losses(logits, torch.tensor([[1, 2, 3]]))
    assert torch.equal(logits, before)
