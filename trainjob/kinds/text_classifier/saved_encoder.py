"""An encoder trained from scratch, loaded only to answer texts on the CPU, without transformers, whose modules take
more than half of the time of a short `trainjob predict`. Its outputs are those of transformers' ModernBERT."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn import functional

from trainjob.models.classifier import AnsweringClassifier

COMPUTED: Mapping[str, Any] = {
    "architectures": ["ModernBertForSequenceClassification"],
    "attention_bias": False,
    "classifier_activation": "gelu",
    "classifier_bias": False,
    "classifier_pooling": "mean",
    "hidden_activation": "gelu",
    "mlp_bias": False,
    "model_type": "modernbert",
    "norm_bias": False,
}
"""The values in config.json of what this module computes."""
_OTHERS = (
    "attention_dropout bos_token_id classifier_dropout cls_token_id decoder_bias deterministic_flash_attn dtype "
    "embedding_dropout eos_token_id hidden_size id2label initializer_cutoff_factor initializer_range intermediate_size "
    "label2id layer_types local_attention max_position_embeddings mlp_dropout norm_eps num_attention_heads "
    "num_hidden_layers pad_token_id problem_type rope_parameters sep_token_id sparse_pred_ignore_index "
    "sparse_prediction tie_word_embeddings transformers_version vocab_size"
)
OTHER_FIELDS = set(_OTHERS.split())
"""The fields of config.json that may have any value."""


def load(folder: Path) -> "SavedEncoder | None":
    """The text classifier in `folder`; None if it needs transformers, or if there is a GPU, where starting it takes
    longer than that. Raises ValueError, KeyError or RuntimeError if it is damaged."""
    config = json.loads((folder / "config.json").read_bytes())
    if torch.cuda.is_available() or config | COMPUTED != config or config.keys() - COMPUTED.keys() - OTHER_FIELDS:
        return None
    if any(each["rope_type"] != "default" for each in config["rope_parameters"].values()):
        return None
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    with torch.device("meta"):
        classifier = SavedEncoder(config, outputs=len(weights["classifier.bias"]))
    classifier.network.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, assign=True)
    return classifier


class SavedEncoder(AnsweringClassifier):
    """A text classifier without training."""

    def __init__(self, config: Mapping[str, Any], outputs: int) -> None:
        super().__init__()
        self.network = EncoderWithHead(config, outputs)
        self._problem_type = config.get("problem_type") or "single_label_classification"

    @property
    def problem_type(self) -> str:
        return self._problem_type

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Logits, float32 [n, C], of tokens and, where some are padding, their mask, both int64 [n, length]."""
        return self.network(input_ids, attention_mask).float()


class EncoderWithHead(nn.Module):
    """Modules have the names that the weights have in model.safetensors."""

    def __init__(self, config: Mapping[str, Any], outputs: int) -> None:
        super().__init__()
        self.model = ModernBertEncoder(config)
        self.head = nn.ModuleDict({"dense": _linear(self.model.width, self.model.width), "norm": _norm(config)})
        self.classifier = nn.Linear(self.model.width, outputs)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        hidden = self.model(input_ids, attention_mask)
        weights = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        mean = (hidden * weights.unsqueeze(-1)).sum(dim=1) / weights.sum(dim=1, keepdim=True)
        return self.classifier(self.head["norm"](functional.gelu(self.head["dense"](mean))))


class ModernBertEncoder(nn.Module):
    """All layers but the classification head. The embedding gets no initial weights: to draw them on the meta device,
    PyTorch imports its compiler."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.width: int = config["hidden_size"]
        tokens = nn.Embedding.from_pretrained(torch.empty(config["vocab_size"], self.width))
        self.embeddings = nn.ModuleDict({"tok_embeddings": tokens, "norm": _norm(config)})
        self._kinds: list[str] = config["layer_types"]
        self.layers = nn.ModuleList(Layer(config, is_first=index == 0) for index in range(len(self._kinds)))
        self.final_norm = _norm(config)
        self._window = config["local_attention"] // 2
        head_size = self.width // config["num_attention_heads"]
        bases = {kind: config["rope_parameters"][kind]["rope_theta"] for kind in self._kinds}
        self._turns = {kind: Turns(base, head_size, config["max_position_embeddings"]) for kind, base in bases.items()}

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """The output for each token, float32 [n, length, width]."""
        hidden = self.embeddings["norm"](self.embeddings["tok_embeddings"](input_ids))
        length = input_ids.shape[1]
        is_padded = attention_mask is not None and not attention_mask.all()
        tokens = attention_mask.bool()[:, None, None, :] if attention_mask is not None and is_padded else None
        masks = {"full_attention": tokens, "sliding_attention": tokens}
        if "sliding_attention" in self._turns and length > self._window:
            positions = torch.arange(length)
            near = (positions[:, None] - positions).abs() <= self._window
            masks["sliding_attention"] = near if tokens is None else near & tokens
        turns = {kind: each.up_to(length) for kind, each in self._turns.items()}
        for layer, kind in zip(self.layers, self._kinds, strict=True):
            hidden = layer(hidden, masks[kind], *turns[kind])
        return self.final_norm(hidden)


class Turns:
    """Cosine and sine of the rotary embeddings, computed once for all texts."""

    def __init__(self, base: float, channels: int, positions: int) -> None:
        self._base, self._channels = base, channels
        self._known = self._of(positions)

    def up_to(self, length: int) -> tuple[Tensor, Tensor]:
        """Both float32 [length, channels]."""
        cosine, sine = self._known if length <= len(self._known[0]) else self._of(length)
        return cosine[:length], sine[:length]

    def _of(self, positions: int) -> tuple[Tensor, Tensor]:
        with torch.device("cpu"):
            frequencies = 1.0 / (self._base ** (torch.arange(0, self._channels, 2, dtype=torch.float) / self._channels))
            angles = (torch.arange(positions)[:, None].float() * frequencies).repeat(1, 2)
        return angles.cos(), angles.sin()


class Layer(nn.Module):
    def __init__(self, config: Mapping[str, Any], is_first: bool) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.attn_norm = nn.Identity() if is_first else _norm(config)
        self.attn = nn.ModuleDict({"Wqkv": _linear(width, 3 * width), "Wo": _linear(width, width)})
        self.mlp_norm = _norm(config)
        self.mlp = nn.ModuleDict({"Wi": _linear(width, 2 * inner), "Wo": _linear(inner, width)})
        self._heads = config["num_attention_heads"]

    def forward(self, hidden: Tensor, mask: Tensor | None, cosine: Tensor, sine: Tensor) -> Tensor:
        """All [n, length, width]; the mask is bool [n or 1, 1, length or 1, length]."""
        hidden = hidden + self._attention(self.attn_norm(hidden), mask, cosine, sine)
        value, gate = self.mlp["Wi"](self.mlp_norm(hidden)).chunk(2, dim=-1)
        return hidden + self.mlp["Wo"](functional.gelu(value) * gate)

    def _attention(self, hidden: Tensor, mask: Tensor | None, cosine: Tensor, sine: Tensor) -> Tensor:
        parts = self.attn["Wqkv"](hidden).unflatten(-1, (3, self._heads, -1)).unbind(dim=-3)
        query, key, value = (part.transpose(1, 2) for part in parts)
        query, key = (_turned(part.float(), cosine, sine).type_as(part) for part in (query, key))
        found = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.attn["Wo"](found.transpose(1, 2).flatten(-2))


def _turned(part: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = part.chunk(2, dim=-1)
    return part * cosine + torch.cat((-second, first), dim=-1) * sine


class OneDnnLinear(nn.Linear):
    """Computed in float32 by oneDNN: on AMD's processors, twice as fast as MKL, which PyTorch calls and which does not
    use their AVX-512."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        if torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        return torch.ops.mkldnn._linear_pointwise(input, self.weight, None, "none", [], "")  # noqa: SLF001


def _linear(inputs: int, outputs: int) -> nn.Linear:
    return (OneDnnLinear if torch.backends.mkldnn.is_available() else nn.Linear)(inputs, outputs, bias=False)


def _norm(config: Mapping[str, Any]) -> nn.LayerNorm:
    return nn.LayerNorm(config["hidden_size"], eps=config["norm_eps"], bias=False)
