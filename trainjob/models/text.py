"""Text classifiers: a transformers encoder with a classification head."""

from pathlib import Path
from typing import Any, Self

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.models.modernbert.configuration_modernbert import ModernBertConfig
from transformers.models.modernbert.modeling_modernbert import ModernBertForSequenceClassification

from trainjob import api
from trainjob.data.hub import is_cached_only
from trainjob.data.text import TextPreprocessor
from trainjob.errors import UserError
from trainjob.models.classifier import Classifier, problem_type
from trainjob.models.pretrained import quiet, refuse_code

PATH = "spec.model.textClassifier"
PRUNED = "trainjob_pruned"
"""In a pruned network's config.json: inputs and outputs of each linear layer of which parts were removed, by name."""


class TextClassifier(Classifier[PreTrainedModel]):
    """A network of transformers. With `freeze_encoder` only its head is trained, and its encoder stays in eval mode."""

    def __init__(self, network: PreTrainedModel, freeze_encoder: bool = False) -> None:
        super().__init__(network)
        self.freeze_encoder = freeze_encoder
        if not torch.cuda.is_available():
            network.set_attn_implementation("eager")  # see docs/decisions/plain-attention-on-cpus.md
        if freeze_encoder:
            network.base_model.requires_grad_(False)

    @property
    def problem_type(self) -> str:
        return self.network.config.problem_type or "single_label_classification"

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.freeze_encoder:
            self.network.base_model.eval()
        return self

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits, float32 [n, C], of tokens and their mask, both int64 [n, length]."""
        return self.network(input_ids=input_ids, attention_mask=attention_mask).logits.float()

    def save(self, folder: Path) -> None:
        with quiet():  # under the module's own names of weights, not those of an older pretrained checkpoint
            self.network.save_pretrained(folder, save_original_format=False)


def build(spec: api.TextClassifier, preprocessor: TextPreprocessor) -> TextClassifier:
    """A new text classifier. Raises UserError if the pretrained encoder is missing or does not fit."""
    if spec.encoder is None:
        return TextClassifier(_pretrained(spec, preprocessor), spec.freeze_encoder)
    first, last = (preprocessor.tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
    config = ModernBertConfig(
        vocab_size=preprocessor.vocabulary_size,
        hidden_size=spec.encoder.hidden_size,
        num_hidden_layers=spec.encoder.layers,
        num_attention_heads=spec.encoder.heads,
        intermediate_size=2 * spec.encoder.hidden_size,
        max_position_embeddings=spec.max_length,
        pad_token_id=preprocessor.pad_token_id,
        cls_token_id=first,
        bos_token_id=first,
        sep_token_id=last,
        eos_token_id=last,
        classifier_pooling="mean",
        embedding_dropout=spec.dropout,
        classifier_dropout=spec.dropout,
        **_labels(spec, preprocessor),
    )
    return TextClassifier(ModernBertForSequenceClassification(config))


def load(folder: Path) -> TextClassifier:
    """The text classifier that is saved in `folder`."""
    from transformers.models.auto.configuration_auto import AutoConfig
    from transformers.models.auto.modeling_auto import AutoModelForSequenceClassification

    refuse_code(str(folder), str(folder), cached_only=True)
    with quiet():
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        if pruned := getattr(config, PRUNED, None):
            network = AutoModelForSequenceClassification.from_config(
                config, dtype=torch.float32, trust_remote_code=False
            )
            _shrink(network, pruned)
            network.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
            return TextClassifier(network)
        network = AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=False, local_files_only=True, use_safetensors=True
        )
    return TextClassifier(network)


def _shrink(network: PreTrainedModel, pruned: Any) -> None:
    """Raises ValueError for what names no linear layers and their sizes."""
    try:
        for name, shape in pruned.items():
            set_linear(network, name, *shape)
    except (AttributeError, TypeError) as error:
        raise ValueError(f"config.json: {PRUNED}: {error}") from error


def set_linear(network: PreTrainedModel, name: str, inputs: int, outputs: int) -> nn.Linear:
    """Puts a new linear layer of another size in the place of the one called `name`, and returns it. The encoder has as
    many heads and channels as its linear layers have room for."""
    old = network.get_submodule(name)
    if not isinstance(old, nn.Linear):
        raise TypeError(f"{name} is no linear layer")
    layer = nn.Linear(inputs, outputs, bias="bias" in dict(old.named_parameters()))
    network.set_submodule(name, layer)
    return layer


def _labels(spec: api.TextClassifier, preprocessor: TextPreprocessor) -> dict[str, Any]:
    classes = preprocessor.classes
    return {
        "num_labels": len(classes),
        "id2label": dict(enumerate(classes)),
        "label2id": {name: index for index, name in enumerate(classes)},
        "problem_type": problem_type(spec.loss),
    }


def _pretrained(spec: api.TextClassifier, preprocessor: TextPreprocessor) -> PreTrainedModel:
    """The pretrained encoder with a new head; a head for other classes in the checkpoint is not used."""
    from transformers.models.auto.modeling_auto import AutoModelForSequenceClassification

    name = spec.pretrained
    assert name is not None
    cached_only = is_cached_only(name)
    try:
        refuse_code(name, f"{PATH}.pretrained: {name}", cached_only)
        with quiet():
            network = AutoModelForSequenceClassification.from_pretrained(
                name,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                trust_remote_code=False,
                local_files_only=cached_only,
                **_labels(spec, preprocessor),
            )
    except (OSError, ValueError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{PATH}.pretrained: cannot load {name!r}, which must be a folder with a transformers encoder "
            f"or the name of one on the Hugging Face hub (which needs the network, and HF_TOKEN if private): {reason}"
        ) from error
    _check_fit(network, spec, preprocessor)
    for module in network.children():
        if module is not network.base_model:
            _set_dropout(module, spec.dropout)
    return network


def _check_fit(network: PreTrainedModel, spec: api.TextClassifier, preprocessor: TextPreprocessor) -> None:
    limit = _longest_text(network)
    if limit is not None and spec.max_length > limit:
        raise UserError(f"{PATH}.maxLength: {spec.pretrained} takes at most {limit} tokens, not {spec.max_length}")
    embeddings = network.get_input_embeddings()
    if isinstance(embeddings, nn.Embedding) and preprocessor.vocabulary_size > embeddings.num_embeddings:
        raise UserError(
            f"{PATH}.pretrained: the tokenizer of {spec.pretrained} has {preprocessor.vocabulary_size} tokens, "
            f"its model only {embeddings.num_embeddings}: the folder has files of two different models"
        )


def _longest_text(network: PreTrainedModel) -> int | None:
    """How many tokens the encoder has positions for; RoBERTa and similar models count them from `padding_idx` + 1."""
    limit = getattr(network.config, "max_position_embeddings", None)
    table = getattr(getattr(network.base_model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return limit if limit is None or padding is None else limit - padding - 1


def _set_dropout(head: nn.Module, probability: float) -> None:
    """Sets the modules' probability: each architecture's configuration has another name for it, or none."""
    for module in head.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
