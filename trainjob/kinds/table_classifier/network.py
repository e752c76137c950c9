"""TabM as a classifier."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from trainjob.api import StrictModel, TableClassifier
from trainjob.kinds.inputs.table import TableInput
from trainjob.kinds.tabm import TableModel, build_tabm, new_encoder, saved_encoder
from trainjob.models.classifier import TrainableClassifier, problem_type

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

MODEL_TYPE = "trainjob-table-classifier"


class TableClassifierConfig(StrictModel):
    """The content of a table classifier's config.json; preprocessor.json has the columns."""

    model_type: Annotated[Literal["trainjob-table-classifier"], Field(alias="model_type")] = MODEL_TYPE
    """Distinguishes this format from those of transformers."""
    model: TableClassifier
    """The TrainJob's `spec.model.tableClassifier`."""
    classes: list[str]
    """Class names in the order of the logits."""


class TableClassifierModule(TableModel[TableClassifierConfig], TrainableClassifier[nn.Module]):
    """The network that `config` describes."""

    def __init__(self, config: TableClassifierConfig, table: TableInput, encoder: "PreTrainedModel | None") -> None:
        assert config.model.tabm is not None
        super().__init__(build_tabm(config.model.tabm, config.model.dropout, table, len(config.classes), encoder))
        self.config = config

    @property
    def spec(self) -> TableClassifier:
        return self.config.model

    @property
    def problem_type(self) -> str:
        return problem_type(self.config.model.loss)

    def forward(
        self,
        numbers: Tensor | None = None,
        categories: Tensor | None = None,
        text_ids: Tensor | None = None,
        text_mask: Tensor | None = None,
    ) -> Tensor:
        """Logits float32 of numbers float32 [n, N], categories int64 [n, M] and, if there are texts, their tokens and
        masks, int64 [n, T, length]. In training those of each member of the ensemble, [n, members, C]; otherwise those
        of the mean of the members' probabilities, [n, C]."""
        logits = self.network(
            numbers, categories, *(each for each in (text_ids, text_mask) if each is not None)
        ).float()
        if self.training:
            return logits
        members = math.log(logits.shape[1])
        if self.problem_type == "single_label_classification":
            return functional.log_softmax(logits, dim=2).logsumexp(dim=1) - members
        yes, no = (functional.logsigmoid(each).logsumexp(dim=1) for each in (logits, -logits))
        return yes - no


def build(spec: TableClassifier, table: TableInput, classes: list[str], as_stored: bool) -> TableClassifierModule:
    """A new table classifier."""
    return TableClassifierModule(
        TableClassifierConfig(model=spec, classes=classes),
        table,
        new_encoder(spec, spec.dropout, table, as_stored),
    )


def load(folder: Path, table: TableInput) -> TableClassifierModule:
    """The table classifier that is saved in `folder`."""
    config = TableClassifierConfig.model_validate_json((folder / "config.json").read_bytes())
    module = TableClassifierModule(config, table, saved_encoder(folder, table))
    module.load_weights(folder)
    return module
