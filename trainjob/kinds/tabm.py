"""TabM (Gorishniy et al., 2024), the network of the kinds of model for tables."""

import warnings
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rtdl_num_embeddings import PiecewiseLinearEmbeddings
from tabm import EnsembleView, LinearEnsemble, TabM, make_tabm_backbone
from torch import Tensor, nn
from torch.nn import functional

from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.mean_pooling import mean_hidden_states
from trainjob.models.config_format import Config, SavedByConfig

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

    from trainjob.kinds.table_network import TableNetwork
    from trainjob.kinds.table_network import TabM as Settings


def build_tabm(
    settings: "Settings", dropout: float, table: TableInput, width: int, encoder: "PreTrainedModel | None"
) -> nn.Module:
    """A new network that computes `width` outputs with each member, [n, members, width], from `TableInput.batch`.
    `encoder` reads the texts, if there are any."""
    numbers = _embeddings(table.levels, settings.embedding_size) if table.levels else None
    if encoder is not None:
        return TabMWithTexts(settings, dropout, table, width, numbers, encoder)
    network = TabM.make(
        n_num_features=len(table.levels),
        cat_cardinalities=table.cardinalities,
        num_embeddings=numbers,
        d_out=width,
        k=settings.members,
        n_blocks=settings.blocks,
        d_block=settings.hidden_size,
        dropout=dropout,
    )
    if network.cat_module is not None:  # its ones and zeros are whole, which ONNX does not join to numbers
        network.cat_module.register_forward_hook(_as_floats)
    return network


class TabMWithTexts(nn.Module):
    """TabM on the embeddings of numbers, on categories, and on the mean of an encoder's hidden states of each text."""

    def __init__(
        self,
        settings: "Settings",
        dropout: float,
        table: TableInput,
        width: int,
        numbers: PiecewiseLinearEmbeddings | None,
        encoder: "PreTrainedModel",
    ) -> None:
        super().__init__()
        self.encoder, self.numbers = encoder, numbers
        self._cardinalities = table.cardinalities
        self.dropout = nn.Dropout(dropout)
        sizes = [settings.embedding_size] * len(table.levels) + table.cardinalities
        sizes += [encoder.config.get_text_config().hidden_size] * len(table.text_columns)
        self.ensemble_view = EnsembleView(k=settings.members)
        self.backbone = make_tabm_backbone(
            d_in=sum(sizes),
            n_blocks=settings.blocks,
            d_block=settings.hidden_size,
            dropout=dropout,
            k=settings.members,
            start_scaling_init="normal",
            start_scaling_init_chunks=sizes,
        )
        self.output = LinearEnsemble(settings.hidden_size, width, k=settings.members)

    def forward(self, numbers: Tensor | None, categories: Tensor | None, text_ids: Tensor, text_mask: Tensor) -> Tensor:
        """Outputs of each member, [n, members, width], of numbers float32 [n, N], categories int64 [n, M], and tokens
        and their masks, both int64 [n, T, length]."""
        parts = [self.numbers(numbers).flatten(1)] if self.numbers is not None else []
        if categories is not None:
            columns = zip(categories.unbind(1), self._cardinalities, strict=True)
            parts += [functional.one_hot(column, count).float() for column, count in columns]
        vectors = mean_hidden_states(self.encoder, text_ids.flatten(0, 1), text_mask.flatten(0, 1))
        parts.append(self.dropout(vectors).unflatten(0, text_ids.shape[:2]).flatten(1))
        return self.output(self.backbone(self.ensemble_view(torch.cat(parts, dim=1))))


class TableModel(SavedByConfig[Config]):
    """The part of a module for tables that is the same for all of them."""

    network: nn.Module

    @property
    @abstractmethod
    def spec(self) -> "TableNetwork":
        """The kind's section of the TrainJob."""

    @property
    def encoder(self) -> "PreTrainedModel | None":
        """The encoder of texts, if there are any."""
        return self.network.encoder if isinstance(self.network, TabMWithTexts) else None

    def rate_factor(self, parameter: nn.Parameter) -> float:
        """An encoder learns slower than TabM."""
        is_of_encoder = self.encoder is not None and any(parameter is own for own in self.encoder.parameters())
        return self.spec.encoder_rate / self.spec.usual_learning_rate if is_of_encoder else 1.0

    def use_plain_attention(self) -> None:
        """See `Trainable`."""
        if self.encoder is not None:
            self.encoder.set_attn_implementation("eager")

    def save_config(self, folder: Path) -> None:
        super().save_config(folder)
        if self.encoder is not None:
            from trainjob.kinds.table_encoder import save_encoder_config

            save_encoder_config(self.encoder, folder)


def new_encoder(model: "TableNetwork", dropout: float, table: TableInput, as_stored: bool) -> "PreTrainedModel | None":
    """A new encoder of the texts; None if there are none."""
    if table.texts is None:
        return None
    from trainjob.kinds.table_encoder import build_encoder

    return build_encoder(model, dropout, table.texts, as_stored)


def saved_encoder(folder: Path, table: TableInput) -> "PreTrainedModel | None":
    """The encoder of the model that is saved in `folder`, without its weights; None if there are no texts."""
    if table.texts is None:
        return None
    from trainjob.kinds.table_encoder import load_encoder

    return load_encoder(folder)


def _as_floats(_: torch.nn.Module, inputs: Any, categories: torch.Tensor) -> torch.Tensor:
    return categories.float()


def _embeddings(levels: list[list[float]], size: int) -> PiecewiseLinearEmbeddings:
    device = torch.get_default_device()
    with warnings.catch_warnings(), torch.device("cpu"):  # which looks at the bins' values, where plans have none
        warnings.filterwarnings("ignore", ".*only one bin", UserWarning)  # of flags
        bins = [torch.tensor(each) for each in levels]
        return PiecewiseLinearEmbeddings(bins, size, activation=False, version="B").to(device)
