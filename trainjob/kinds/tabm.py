"""TabM (Gorishniy et al., 2024), the network of the kinds of model for tables."""

import warnings
from typing import TYPE_CHECKING, Any

import torch
from rtdl_num_embeddings import PiecewiseLinearEmbeddings
from tabm import TabM

from trainjob.kinds.inputs.table import TableInput

if TYPE_CHECKING:
    from trainjob.kinds.table_network import TabM as Settings


def build_tabm(settings: "Settings", dropout: float, table: TableInput, width: int) -> TabM:
    """A new network that computes `width` outputs with each member, [n, members, width], from the numbers and
    categories of `TableInput.batch`."""
    network = TabM.make(
        n_num_features=len(table.levels),
        cat_cardinalities=table.cardinalities,
        num_embeddings=_embeddings(table.levels, settings.embedding_size) if table.levels else None,
        d_out=width,
        k=settings.members,
        n_blocks=settings.blocks,
        d_block=settings.hidden_size,
        dropout=dropout,
    )
    if network.cat_module is not None:  # its ones and zeros are whole, which ONNX does not join to numbers
        network.cat_module.register_forward_hook(_as_floats)
    return network


def _as_floats(_: torch.nn.Module, inputs: Any, categories: torch.Tensor) -> torch.Tensor:
    return categories.float()


def _embeddings(levels: list[list[float]], size: int) -> PiecewiseLinearEmbeddings:
    device = torch.get_default_device()
    with warnings.catch_warnings(), torch.device("cpu"):  # which looks at the bins' values, where plans have none
        warnings.filterwarnings("ignore", ".*only one bin", UserWarning)  # of flags
        bins = [torch.tensor(each) for each in levels]
        return PiecewiseLinearEmbeddings(bins, size, activation=False, version="B").to(device)
