"""LoRA with peft: a pretrained network is frozen, and the product of two low-rank matrices is learned beside some of
its linear layers (Hu et al. 2021, https://arxiv.org/abs/2106.09685). The adapter is saved in peft's format."""

import json
import warnings
from pathlib import Path
from typing import Any, cast

import safetensors.torch
import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.pytorch_utils import Conv1D  # GPT-2's linear layers

from trainjob import api
from trainjob.errors import UserError
from trainjob.pretrained.remote_model import source_of

ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
"""Names of peft's files of an adapter."""
_NAME, _PREFIX = "default", "base_model.model."
"""Name of the adapter in a network, and prefix of its weights in a file."""
_KEPT = ("r", "lora_alpha", "lora_dropout", "target_modules")
"""The part of an adapter's configuration that trainjob sets."""


def add(network: PreTrainedModel, spec: api.LoRA, field: str) -> None:
    """Adds a new adapter to the network and freezes the rest; `field` is the path of its spec. Raises UserError for
    unknown linear layers."""
    from peft import LoraConfig

    wanted, paths = spec.target_modules, _linear_layers(network)
    if missing := [name for name in wanted or () if not any(f".{path}".endswith(f".{name}") for path in paths)]:
        found = ", ".join(sorted({path.rpartition(".")[2] for path in paths}))
        raise UserError(
            f"{field}.targetModules: {network.config.model_type} has no linear layer {' and no '.join(missing)}; "
            f"it has {found}"
        )
    config = LoraConfig(
        r=spec.rank,
        lora_alpha=2 * spec.rank if spec.alpha is None else spec.alpha,  # pyrefly: ignore[bad-argument-type]
        lora_dropout=spec.dropout,
        target_modules=wanted or "all-linear",
        task_type="CAUSAL_LM",
    )
    _put(network, config)


def _put(network: PreTrainedModel, config: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of GPT-2's linear layers, which peft knows
        network.add_adapter(config, _NAME)


def _linear_layers(network: PreTrainedModel) -> list[str]:
    """The paths of the linear layers, except the one that computes the logits."""
    head = network.get_output_embeddings()
    return [path for path, part in network.named_modules() if isinstance(part, nn.Linear | Conv1D) and part is not head]


def has_adapter(network: PreTrainedModel) -> bool:
    return hasattr(network, "peft_config")


def adapter_weights(network: PreTrainedModel) -> dict[str, Tensor]:
    """The trained weights, by the names that peft saves them under."""
    return {
        _PREFIX + name.replace(f".{_NAME}.", "."): weight
        for name, weight in network.named_parameters()
        if f".{_NAME}." in name
    }


def save_config(network: PreTrainedModel, folder: Path) -> None:
    """Writes adapter_config.json, which names the network that the adapter is for."""
    config = cast("Any", network).peft_config[_NAME].to_dict()
    config |= {"base_model_name_or_path": source_of(str(network.name_or_path)), "inference_mode": True}
    config = {name: sorted(value) if isinstance(value, set) else value for name, value in config.items()}
    (folder / ADAPTER).write_text(json.dumps(config, indent=2))


def save_weights(network: PreTrainedModel, folder: Path) -> None:
    weights = {name: weight.detach().contiguous() for name, weight in adapter_weights(network).items()}
    safetensors.torch.save_file(weights, folder / ADAPTER_WEIGHTS, {"format": "pt"})


def base_of(folder: Path) -> str | None:
    """The name of the network that the adapter in `folder` is for; None if there is no adapter."""
    file = folder / ADAPTER
    return str(json.loads(file.read_bytes())["base_model_name_or_path"]) if file.is_file() else None


@torch.no_grad()
def restore(network: PreTrainedModel, folder: Path) -> None:
    """Adds a saved adapter to the network that it was trained for. Raises ValueError if it was trained for another."""
    from peft import LoraConfig

    config = json.loads((folder / ADAPTER).read_bytes())
    if config.get("peft_type") != "LORA":
        raise ValueError(f"{ADAPTER} is not of a LoRA adapter")
    _put(network, LoraConfig(**{name: config[name] for name in _KEPT}, task_type="CAUSAL_LM"))
    weights, saved = adapter_weights(network), safetensors.torch.load_file(folder / ADAPTER_WEIGHTS)
    if weights.keys() != saved.keys() or any(weights[name].shape != saved[name].shape for name in saved):
        raise ValueError("the adapter's weights are for another network")
    for name, weight in weights.items():
        weight.copy_(saved[name])


def merge(network: PreTrainedModel) -> None:
    """Adds the adapter to the weights of its layers, and removes it from the network."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, part in list(network.named_modules()):
        if isinstance(part, BaseTunerLayer):
            part.merge(safe_merge=True)
            network.set_submodule(name, part.get_base_layer())
    del cast("Any", network).peft_config
    network._hf_peft_config_loaded = False  # noqa: SLF001
