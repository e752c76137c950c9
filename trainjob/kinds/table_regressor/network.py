"""TabM as a regressor."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from tabm import TabM
from torch import Tensor

from trainjob.api import StrictModel
from trainjob.api import TableRegressor as Spec
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.tabm import build_tabm
from trainjob.models.config_format import SavedByConfig
from trainjob.models.trainable import Trainable

MODEL_TYPE = "trainjob-table-regressor"


class TableConfig(StrictModel):
    """The content of a table regressor's config.json; preprocessor.json has the columns."""

    model_type: Annotated[Literal["trainjob-table-regressor"], Field(alias="model_type")] = MODEL_TYPE
    """Distinguishes this format from those of transformers."""
    model: Spec
    """The TrainJob's `spec.model.tableRegressor`."""
    outputs: int = 1
    """Numbers of each row; earlier versions did not write it."""


class TableRegressor(SavedByConfig[TableConfig], Trainable[TabM]):
    """The network that `config` describes."""

    def __init__(self, config: TableConfig, table: TableInput) -> None:
        assert config.model.tabm is not None
        super().__init__(build_tabm(config.model.tabm, config.model.dropout, table, config.outputs))
        self.config = config

    def forward(self, numbers: Tensor | None = None, categories: Tensor | None = None) -> Tensor:
        """Standardized labels float32 of numbers float32 [n, N] and categories int64 [n, M]. In training those of each
        member of the ensemble, [n, members, outputs]; otherwise the mean of the members', [n, outputs]."""
        answers = self.network(numbers, categories).float()
        return answers if self.training else answers.mean(dim=1)


def build(spec: Spec, table: TableInput, outputs: int) -> TableRegressor:
    """A new table regressor that predicts this many numbers for each row."""
    return TableRegressor(TableConfig(model=spec, outputs=outputs), table)


def load(folder: Path, table: TableInput) -> TableRegressor:
    """The table regressor that is saved in `folder`."""
    config = TableConfig.model_validate_json((folder / "config.json").read_bytes())
    module = TableRegressor(config, table)
    module.load_weights(folder)
    return module
