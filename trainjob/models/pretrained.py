"""Loads, checks and saves networks of transformers."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from torch import nn
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, AutoConfig
from transformers.utils import logging

from trainjob.api import Loss
from trainjob.errors import UserError
from trainjob.models import gpu_attention
from trainjob.models.classifier import TrainableClassifier, problem_type
from trainjob.models.pretrained_layers import head_of, layers_of, recompute_activations
from trainjob.pretrained.hub import is_cached_only


class PretrainedClassifier(TrainableClassifier[PreTrainedModel]):
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

    def sharding_units(self) -> Iterator[nn.Module]:
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


def label_config(classes: list[str], loss: Loss) -> dict[str, Any]:
    """The head's settings in a network's config.json."""
    return {
        "num_labels": len(classes),
        "id2label": dict(enumerate(classes)),
        "label2id": {name: index for index, name in enumerate(classes)},
        "problem_type": problem_type(loss),
    }


def number_config(columns: list[str]) -> dict[str, Any]:
    """The settings of a head that predicts the number in each of the columns; one without a name if there are none."""
    names = {"id2label": dict(enumerate(columns)), "label2id": {name: index for index, name in enumerate(columns)}}
    return {"num_labels": max(len(columns), 1), "problem_type": "regression"} | (names if columns else {})


def load_pretrained(
    kind: Any, name: str, field: str, noun: str, as_stored: bool = False, **options: Any
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """The network called `name`, and transformers' report on its weights: `missing_keys`, `mismatched_keys` and others.
    Loads it with transformers' class `kind` in float32, or in its own type if `as_stored`. On the meta device only
    config.json is read, and the report is empty.

    Raises UserError if it cannot be loaded or needs code of its own; the message names `field` and calls it a `noun`.
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
    """Raises UserError if the model's config.json names code to run: a class that transformers does not have,
    or a kernel from the hub for its attention."""
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
    """Raises UserError if `max_length` exceeds the network's `limit`, or if it has no embedding for some tokens."""
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
    """Saves the files that `save_network` saves, except the weights."""
    network.config.dtype = "float32"
    network.config.architectures = [type(network).__name__.removeprefix("FSDP")]  # as fully_shard calls the class
    network.config.save_pretrained(folder)
    if network.can_generate():
        network.generation_config.save_pretrained(folder)
