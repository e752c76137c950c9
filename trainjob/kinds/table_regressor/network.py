"""TabM as a regressor."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from torch import Tensor, nn

from trainjob.api import StrictModel, TableRegressor
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.tabm import TableModel, build_tabm, new_encoder, saved_encoder
from trainjob.models.trainable import Trainable

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

MODEL_TYPE = "trainjob-table-regressor"


class TableRegressorConfig(StrictModel):
    """The content of a table regressor's config.json; preprocessor.json has the columns."""

    model_type: Annotated[Literal["trainjob-table-regressor"], Field(alias="model_type")] = MODEL_TYPE
    """Distinguishes this format from those of transformers."""
    model: TableRegressor
    """The TrainJob's `spec.model.tableRegressor`."""
    outputs: int = 1
    """Numbers of each row; earlier versions did not write it."""


class TableRegressorModule(TableModel[TableRegressorConfig], Trainable[nn.Module]):
    """The network that `config` describes."""

    def __init__(self, config: TableRegressorConfig, table: TableInput, encoder: "PreTrainedModel | None") -> None:
        assert config.model.tabm is not None
        super().__init__(build_tabm(config.model.tabm, config.model.dropout, table, config.outputs, encoder))
        self.config = config

    @property
    def spec(self) -> TableRegressor:
        return self.config.model

    def forward(
        self,
        numbers: Tensor | None = None,
        categories: Tensor | None = None,
        text_ids: Tensor | None = None,
        text_mask: Tensor | None = None,
    ) -> Tensor:
        """Standardized labels float32 of numbers float32 [n, N], categories int64 [n, M] and, if there are texts, their
        tokens and masks, int64 [n, T, length]. In training those of each member of the ensemble,
        [n, members, outputs]; otherwise the mean of the members', [n, outputs]."""
        answers = self.network(
            numbers, categories, *(each for each in (text_ids, text_mask) if each is not None)
        ).float()
        return answers if self.training else answers.mean(dim=1)


def build(spec: TableRegressor, table: TableInput, outputs: int, as_stored: bool) -> TableRegressorModule:
    """A new table regressor that predicts this many numbers for each row."""
    return TableRegressorModule(
        TableRegressorConfig(model=spec, outputs=outputs), table, new_encoder(spec, spec.dropout, table, as_stored)
    )


def load(folder: Path, table: TableInput) -> TableRegressorModule:
    """The table regressor that is saved in `folder`."""
    config = TableRegressorConfig.model_validate_json((folder / "config.json").read_bytes())
    module = TableRegressorModule(config, table, saved_encoder(folder, table))
    module.load_weights(folder)
    return module
