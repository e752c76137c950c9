"""Common parts of the regressors' specs."""

from typing import Annotated

from pydantic import Field

from trainjob.kinds.facts import SCRATCH_RATE, Direction
from trainjob.schema.base import OneOf, StrictModel
from trainjob.schema.fields import Dropout

METRICS: dict[str, Direction] = {
    "validation_loss": "min",
    "validation_rmse": "min",
    "validation_mae": "min",
    "validation_r2": "max",
    "validation_spearman": "max",
    "train_loss": "min",
}
"""RMSE and MAE are in the unit of the labels, losses in their standard deviations. With several numbers a row, each is
the mean of the columns, RMSE and MAE in standard deviations, too."""
NEED_DIFFERENT_LABELS = ("validation_r2", "validation_spearman")
"""Metrics that are not defined where all labels of the validation rows are equal."""
ERRORS = ("validation_rmse", "validation_mae")
SCORES = (
    "trainjob.evaluation.scores.several_numbers:SeveralNumbersScores",
    "trainjob.evaluation.scores.numbers:NumberScores",
)
SCALES_LOSSES = ("loss.huber.delta",)
_FINE_TUNING_RATE = 1e-4
"""At 1e-3, pretrained weights lose much of their knowledge."""


class RegressionLoss(OneOf):
    """The loss, averaged over rows and columns, of labels that are divided by their standard deviation."""

    class SquaredError(StrictModel):
        """The squared error (MSE): the model predicts the mean."""

    class AbsoluteError(StrictModel):
        """The absolute error (MAE): the model predicts the median, and outliers count less."""

    class Huber(StrictModel):
        """Squared for small errors, absolute for large ones."""

        delta: Annotated[float, Field(gt=0)] = 1.0
        """Errors up to this are squared, in standard deviations of the training labels."""

    squared_error: SquaredError | None = None
    """The squared error (MSE): the model predicts the mean."""
    absolute_error: AbsoluteError | None = None
    """The absolute error (MAE): the model predicts the median, and outliers count less."""
    huber: Huber | None = None
    """Squared for small errors, absolute for large ones."""


class Regressor(OneOf):
    """Common fields of the regressors."""

    dropout: Dropout = 0.1
    """Probability of dropping an activation before the linear head."""
    loss: RegressionLoss = RegressionLoss(squared_error=RegressionLoss.SquaredError())
    """The loss function."""

    @staticmethod
    def rate_of(pretrained: str | None, freeze_encoder: bool) -> float:
        """The default learning rate."""
        return SCRATCH_RATE if pretrained is None or freeze_encoder else _FINE_TUNING_RATE
