"""Loads, checks, freezes and saves networks of transformers."""

import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from torch import nn
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, AutoConfig
from transformers.utils import logging

from trainjob.api import Loss
from trainjob.errors import UserError
from trainjob.models import gpu_attention
from trainjob.models.classifier import Classifier, problem_type
from trainjob.pretrained.hub import is_cached_only


class PretrainedClassifier(Classifier[PreTrainedModel]):
    """A network of transformers. With `freeze_encoder` only its head is trained, and the rest stays in eval mode."""

    def __init__(self, network: PreTrainedModel, freeze_encoder: bool = False) -> None:
        super().__init__(network)
        self.freeze_encoder = freeze_encoder
        with quiet():
            gpu_attention.use(network)
        if freeze_encoder:
            network.requires_grad_(False)
            for part in head_of(network):
                part.requires_grad_(True)

    @property
    def problem_type(self) -> str:
        return self.network.config.problem_type or "single_label_classification"

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.freeze_encoder:
            self.network.eval()
            for part in head_of(self.network):
                part.train(mode)
        return self

    def parts(self) -> Iterator[nn.Module]:
        yield from layers_of(self.network)
        yield self

    def recompute_activations(self) -> None:
        recompute_activations(self.network)

    def use_plain_attention(self) -> None:
        with quiet():
            self.network.set_attn_implementation("eager")

    def save(self, folder: Path) -> None:
        save_network(self.network, folder)

    def save_config(self, folder: Path) -> None:
        save_network_config(self.network, folder)


def head_of(network: PreTrainedModel) -> list[nn.Module]:
    """The layers after the encoder."""
    if network.base_model is not network:
        return [part for part in network.children() if part is not network.base_model]
    classifier = getattr(network, "classifier", None)  # CLIP's and SigLIP's have the encoder under another name
    return [classifier] if isinstance(classifier, nn.Module) else []


def layers_of(network: PreTrainedModel) -> Iterator[nn.Module]:
    """The network's layers. Weights that lie on the meta device are made when their layer is given, those that are of
    another type than float32 become it, and those outside of layers at the end."""
    is_empty, made = any(map(_is_empty, network.modules())), set[nn.Module]()
    for layer in _layers(network):
        _make_weights(network, layer, made)
        yield layer
    _make_weights(network, network, made)
    if is_empty:
        network.tie_weights()


def _layers(network: PreTrainedModel) -> list[nn.Module]:
    return [module for module in network.modules() if isinstance(module, GradientCheckpointingLayer)]


@torch.no_grad()
def _make_weights(network: PreTrainedModel, part: nn.Module, made: set[nn.Module]) -> None:
    """Gives the modules of `part`, but for those already `made`, their initial weights, on the CPU, where they have
    none, and has them be float32."""
    own = [module for module in part.modules() if module not in made]
    made.update(own)
    empty = list(filter(_is_empty, own))
    for module in empty:
        module.to_empty(device="cpu", recurse=False)
    for module in reversed(own) if empty else ():  # some modules see to the weights of those inside them
        network._init_weights(module)  # noqa: SLF001  # what is public makes all weights at once
    for tensor in _numbers_of(own):
        tensor.data = tensor.data.float()


def _is_empty(module: nn.Module) -> bool:
    return any(tensor.is_meta for tensor in _own_tensors(module))


def _own_tensors(module: nn.Module) -> tuple[torch.Tensor, ...]:
    return (*module.parameters(recurse=False), *module.buffers(recurse=False))


def _numbers_of(modules: Iterable[nn.Module]) -> list[torch.Tensor]:
    """The modules' own weights and buffers, except integers."""
    return [tensor for tensor in itertools.chain(*map(_own_tensors, modules)) if tensor.is_floating_point()]


@contextmanager
def computing_in_float32(network: PreTrainedModel) -> Generator[None]:
    """Within the block, the weights of each layer are float32 while the layer computes, and weights outside of layers
    all the time. Restores them afterwards."""
    before: dict[torch.Tensor, torch.Tensor] = {}

    def widen(tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            if tensor not in before:
                before[tensor], tensor.data = tensor.data, tensor.data.float()

    def restore(tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            if tensor in before:  # a layer may lie inside another
                tensor.data = before.pop(tensor)

    inside = {layer: _numbers_of(layer.modules()) for layer in _layers(network)}
    outside = set(_numbers_of(network.modules())).difference(*inside.values())
    with ExitStack() as afterwards:
        for layer, own in inside.items():
            afterwards.callback(layer.register_forward_pre_hook(lambda *_, own=own: widen(own)).remove)
            hook = layer.register_forward_hook(lambda *_, own=own: restore(own), always_call=True)
            afterwards.callback(hook.remove)
        widen(outside)
        afterwards.callback(restore, outside)
        yield


def recompute_activations(network: PreTrainedModel) -> None:
    """Makes the backward pass recompute the layers' activations. Raises UserError if the network cannot."""
    if not network.supports_gradient_checkpointing:
        raise UserError(f"spec.training.activationCheckpointing: transformers has none for {network.config.model_type}")
    earlier: Any = network.gradient_checkpointing_enable  # its name before transformers 5.23, which warns of it
    getattr(network, "activation_checkpointing_enable", earlier)({"use_reentrant": False})


def freeze_unused(network: nn.Module, answers: torch.Tensor) -> None:
    """Freezes the weights of `network` that its `answers` do not depend on, such as CLIP's last normalization or a mask
    token: nothing would train them, and DistributedDataParallel waits for the gradient of all that is not frozen."""
    used: set[int] = set()
    seen: set[Any] = set()
    steps = [answers.grad_fn]
    while steps:
        step = steps.pop()
        if step is None or step in seen:
            continue
        seen.add(step)
        used.add(id(getattr(step, "variable", None)))
        steps += [earlier for earlier, _ in step.next_functions]
    for parameter in network.parameters():
        if id(parameter) not in used:
            parameter.requires_grad_(False)


def set_dropout(head: list[nn.Module], probability: float) -> bool:
    """Sets the modules' probability: each architecture's configuration has another name for it, or none. Whether there
    is any dropout."""
    found = [module for part in head for module in part.modules() if isinstance(module, nn.Dropout)]
    for module in found:
        module.p = probability
    return bool(found)


def label_config(classes: list[str], loss: Loss) -> dict[str, Any]:
    """The head's settings in a network's config.json."""
    return {
        "num_labels": len(classes),
        "id2label": dict(enumerate(classes)),
        "label2id": {name: index for index, name in enumerate(classes)},
        "problem_type": problem_type(loss),
    }


NUMBER_CONFIG: Mapping[str, Any] = {"num_labels": 1, "problem_type": "regression"}
"""The same of a head that predicts a number."""


def load_pretrained(
    kind: Any, name: str, field: str, noun: str, as_stored: bool = False, **options: Any
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """The network called `name`, loaded by transformers' class `kind` in float32, or `as_stored`, and its
    loading report: `missing_keys`, `mismatched_keys` and others. Errors call it a `noun` and name the `field` that
    names it. On the meta device only config.json is read, and the report is empty.

    Raises UserError where it cannot be loaded, or needs code of its own.
    """
    cached_only = is_cached_only(name, field)
    try:
        refuse_code(name, f"{field}: {name}", cached_only)
        with quiet():
            if torch.get_default_device().type == "meta":
                return _without_weights(kind, name, cached_only, options), {"missing_keys": (), "mismatched_keys": ()}
            return kind.from_pretrained(
                name,
                dtype="auto" if as_stored else torch.float32,
                trust_remote_code=False,
                local_files_only=cached_only,
                output_loading_info=True,
                **options,
            )
    except (ImportError, OSError, ValueError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{field}: cannot load {name!r}, which must be a folder with a transformers {noun} "
            f"or the name of one on the Hugging Face hub (which needs the network, and HF_TOKEN if private): {reason}"
        ) from error


def _without_weights(kind: Any, name: str, cached_only: bool, options: dict[str, Any]) -> PreTrainedModel:
    config, _ = AutoConfig.from_pretrained(
        name, trust_remote_code=False, local_files_only=cached_only, return_unused_kwargs=True, **options
    )
    return kind.from_config(config, dtype=torch.float32, trust_remote_code=False)


def load_saved(kind: Any, folder: Path) -> PreTrainedModel:
    """The network that is saved in `folder`, loaded by transformers' class `kind` in float32."""
    refuse_code(str(folder), str(folder), cached_only=True)
    with quiet():
        return kind.from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=False, local_files_only=True, use_safetensors=True
        )


def refuse_code(name: str, shown: str, cached_only: bool) -> None:
    """Raises UserError where the model's config.json names code to run: a class beside it that transformers does not
    have, or a kernel from the hub for its attention."""
    config, _ = PreTrainedConfig.get_config_dict(name, local_files_only=cached_only)
    if "auto_map" in config and config.get("model_type") not in CONFIG_MAPPING:
        raise UserError(
            f"{shown}: config.json says that the model needs its own code (auto_map), which is never run; use "
            "a model whose model_type is part of transformers"
        )
    for key in ("attn_implementation", "_attn_implementation"):
        if "/" in str(config.get(key)):
            raise UserError(
                f"{shown}: config.json names code from the hub ({key}), which is never run; remove that line"
            )


@contextmanager
def quiet() -> Generator[None]:
    """Silences transformers' progress bars, and its list of the head's weights that a pretrained checkpoint lacks."""
    verbosity, progress_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if progress_bars:
            logging.enable_progress_bar()


def check_compatible(
    network: PreTrainedModel, path: str, name: str, max_length: int, limit: int | None, vocabulary_size: int
) -> None:
    """Raises UserError where `max_length` is above the network's `limit`, or its tokenizer has tokens that it lacks."""
    if limit is not None and max_length > limit:
        raise UserError(f"{path}.maxLength: {name} takes at most {limit} tokens, not {max_length}")
    embeddings = network.get_input_embeddings()
    if isinstance(embeddings, nn.Embedding) and vocabulary_size > embeddings.num_embeddings:
        raise UserError(
            f"{path}.pretrained: the tokenizer of {name} has {vocabulary_size} tokens, "
            f"its model only {embeddings.num_embeddings}: the folder mixes files of two models, or sets a "
            "tokenizer_class that adds its own tokens"
        )


def save_network(network: PreTrainedModel, folder: Path) -> None:
    """Saves the network with the module's own weight names, even if its pretrained checkpoint had older ones."""
    with quiet():
        network.save_pretrained(folder, save_original_format=False)


def save_network_config(network: PreTrainedModel, folder: Path) -> None:
    """Saves what `save_network` does, without the weights."""
    network.config.dtype = "float32"
    network.config.architectures = [type(network).__name__.removeprefix("FSDP")]  # as fully_shard calls the class
    network.config.save_pretrained(folder)
    if network.can_generate():
        network.generation_config.save_pretrained(folder)
