"""The precision that is asked for, or the fastest."""

import pytest
import torch

from trainjob.precision import fastest, resolve_precision


def test_precision_is_what_is_asked_for():
    cpu = torch.device("cpu")
    assert resolve_precision("float32", cpu) is torch.float32
    assert resolve_precision("bf16", cpu) is torch.bfloat16
    assert resolve_precision("fp16", cpu) is torch.float16
    assert resolve_precision("auto", cpu) in (torch.float32, torch.bfloat16)


@pytest.mark.parametrize(
    ("multiplies_bfloat16", "capability", "expected"),
    [
        (True, (8, 0), torch.bfloat16),
        (True, None, torch.bfloat16),
        (False, (7, 5), torch.float16),
        (False, (6, 1), torch.float32),
        (False, None, torch.float32),
    ],
)
def test_auto_is_the_fastest_that_the_hardware_has(
    multiplies_bfloat16: bool, capability: tuple[int, int] | None, expected: torch.dtype
):
    assert fastest(multiplies_bfloat16, capability) is expected
