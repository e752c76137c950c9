"""Attention on GPUs, through transformers' interface: PyTorch's ("sdpa"), except that the host never waits to inspect a
mask, and that each document of a packed row is computed separately."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface, PreTrainedModel

from trainjob.models.stand_in import is_cpu_for_gpu, is_gpu

NAME = "trainjob"
MAX_CHANNELS = 256
"""Largest head size that the kernel computes; it must be a multiple of 8."""


def use(network: PreTrainedModel) -> None:
    """Makes `network` use this attention if there is a GPU, and if it uses PyTorch's otherwise."""
    if (torch.cuda.is_available() or is_cpu_for_gpu()) and network.config._attn_implementation == "sdpa":  # noqa: SLF001
        network.set_attn_implementation(NAME)


def bounds_of(starts: Tensor, length: int) -> Tensor:
    """The starts of all documents and the end of the last, counted over all rows: int32 [n * d + 1]. `starts`, int32
    [n, d], has the starts within each row; rows with fewer documents are padded with `length`."""
    rows = torch.arange(len(starts) + 1, dtype=torch.int32, device=starts.device) * length
    return torch.cat([(starts + rows[:-1, None]).flatten(), rows[-1:]])


def computes_documents(network: PreTrainedModel, device: torch.device) -> bool:
    """Whether `attend` computes each document of a packed row separately here: its kernel is for 16 bits, and has
    neither dropout nor caps."""
    config: Any = network.config.get_text_config()
    has_dropout = network.training and getattr(config, "attention_dropout", 0.0) != 0.0
    return (
        is_gpu(device)
        and config._attn_implementation == NAME  # noqa: SLF001
        and network._supports_flash_attn  # noqa: SLF001
        and torch.is_autocast_enabled(device.type)
        and not has_dropout
        and getattr(config, "attn_logit_softcapping", None) is None
    )


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    cu_seq_lens_q: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention of query, key and value, each [n, heads, length, channels], as [n, length, heads, channels]. With
    `cu_seq_lens_q` from `bounds_of`, each token attends to the tokens before it in its document, whatever the mask; key
    and value may have fewer heads."""
    if is_cpu_for_gpu():
        options["dropout"] = 0.0  # a GPU's kernels keep no mask of it
    if cu_seq_lens_q is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    rows, heads, length, channels = query.shape
    window = options.get("sliding_window")
    if not is_gpu(query.device) or channels % 8 or channels > MAX_CHANNELS or value.shape[-1] != channels:
        within = _within_documents(cu_seq_lens_q, rows, length, window)
        return sdpa_attention_forward(module, query, key, value, within, **options)
    if is_cpu_for_gpu():
        return sdpa_attention_forward(module, query, key, value, None, **options | {"is_causal": True})
    dtype = torch.get_autocast_dtype(query.device.type) if value.dtype == torch.float32 else value.dtype

    def flat(each: Tensor) -> Tensor:
        return each.repeat_interleave(heads // each.shape[1], dim=1).transpose(1, 2).flatten(0, 1).to(dtype)

    found = varlen_attn(
        flat(query),
        flat(key),
        flat(value),
        cu_seq_lens_q,
        cu_seq_lens_q,
        length,
        length,
        scale=options.get("scaling"),
        window_size=(-1 if window is None else window - 1, 0),
    )
    assert isinstance(found, Tensor)
    return found.unflatten(0, (rows, length)), None


def _within_documents(bounds: Tensor, rows: int, length: int, window: int | None) -> Tensor:
    """The attention mask for cases that the kernel cannot compute, bool [rows, 1, length, length]."""
    positions = torch.arange(rows * length, device=bounds.device)
    documents, positions = torch.bucketize(positions, bounds, right=True).view(rows, 1, length), positions[:length]
    back = positions[:, None] - positions
    allowed = (back >= 0) if window is None else (back >= 0) & (back < window)
    return allowed & (documents[..., None] == documents[:, :, None])


def mask(*arguments: Any, **options: Any) -> Tensor | None:
    """Keeps a mask that hides nothing: to find that out, the host would have to wait for the GPU."""
    skips = options.get("allow_is_bidirectional_skip", False) and options.get("attention_mask") is None
    if skips and options.get("local_size") is None:
        return None  # while PyTorch compiles, too: transformers 5.17 makes one then
    return sdpa_mask(*arguments, **options | {"allow_is_bidirectional_skip": skips})


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, mask)
