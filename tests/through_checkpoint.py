"""A model's weights on their way through a checkpoint."""

from pathlib import Path
from typing import Any

import torch

from trainjob.models import Trainable
from trainjob.runs.checkpoints import CheckpointTensors, write_rank_tensors
from trainjob.runs.digests import digests_of
from trainjob.storage import Folder
from trainjob.worker.sharded_tensors import copy_rows, in_host_memory, load_weights


def carry(saved: Trainable[Any], other: Trainable[Any], folder: Path) -> None:
    """Gives `other` the weights of `saved`, by a checkpoint of one rank in `folder`."""
    write_rank_tensors(folder, 0, in_host_memory(copy_rows(saved, torch.optim.SGD(saved.parameters()), 0, 1)))
    load_weights(other, CheckpointTensors(Folder(str(folder)), digests_of(folder)))
