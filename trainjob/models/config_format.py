"""The format of networks that transformers does not know: a config.json of our own, and the weights."""

from pathlib import Path
from typing import Any, Generic, TypeVar

import safetensors.torch

from trainjob.api import StrictModel

Config = TypeVar("Config", bound=StrictModel)


class SavedByConfig(Generic[Config]):
    """The saving of a `Trainable` that can be built again from its config."""

    network: Any
    config: Config

    def save(self, folder: Path) -> None:
        weights = {name: weight.contiguous() for name, weight in self.network.state_dict().items()}
        safetensors.torch.save_file(weights, folder / "model.safetensors")
        self.save_config(folder)

    def save_config(self, folder: Path) -> None:
        (folder / "config.json").write_text(self.config.model_dump_json(by_alias=True, exclude_none=True, indent=2))

    def load_weights(self, folder: Path) -> None:
        """Takes the weights that are saved in `folder`."""
        self.network.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
