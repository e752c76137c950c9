"""The protocol of a fitted target: what a network learns of each row, and how it answers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from torch import Tensor

    from trainjob.api import Loss, TrainJobSpec
    from trainjob.data.batches.examples import Examples
    from trainjob.data.read.rows import OnBadRow, Rows
    from trainjob.evaluation import Scores
    from trainjob.evaluation.estimates import Judge
    from trainjob.kinds.classifier import Classifier
    from trainjob.kinds.reply import Reply
    from trainjob.models.objective import Objective

_NO_BASELINE = "this kind of model has no such baseline"


class Guesses(NamedTuple):
    """The predictions of a baseline."""

    predicted: "np.ndarray"
    """[n, ...], as labels are read."""
    probabilities: "np.ndarray | None" = None
    """The probabilities of these predictions, float32 [n]; None if it has none."""
    weights: "tuple[np.ndarray, np.ndarray] | None" = None
    """The weights [f, width] and intercepts [width] of a linear model with outputs as a network has them; None where it
    cannot be kept."""


class Target(Protocol):
    """The label of each row, and the form of an answer. It is fitted on the labels of the training rows.

    Picklable, like an input. A target that derives from this class overrides only the methods that it needs: the bodies
    here are those of a target without classes, statistics of labels, and baselines.
    """

    @property
    def classes(self) -> list[str]:
        """The classes that an answer chooses from, in the order of the outputs; empty where it chooses none."""
        return []

    @property
    def chooses_one_class(self) -> bool:
        """Whether each answer is exactly one of `classes`."""
        return False

    @property
    def width(self) -> int:
        """The number of outputs for each row; 0 where a row has one answer for each token."""
        ...

    @property
    def label_name(self) -> str:
        """The name of the number that it predicts; empty where it predicts something else or has no name."""
        return ""

    def sizes(self) -> dict[str, int]:
        """The counts for summaries and `/healthz`, such as {"classes": 10}; empty if there are none."""
        return {}

    def in_words(self) -> str | None:
        """One line on the labels of the training rows; None where they have none."""
        ...

    def lenient(self) -> "Target":
        """The same target, which also accepts labels that the first pass left out because too few rows have them."""
        return self

    def completed(self, labels: "np.ndarray") -> "Target":
        """The same target, completed with statistics of the training rows' labels [n, ...]."""
        return self

    def decided(self, validation: "Scores") -> "Target":
        """The same target, completed with what its scores on the validation rows have chosen, such as thresholds."""
        return self

    def for_baselines(self) -> "Target":
        """The same target for baselines: without what the network's scores have chosen, such as thresholds."""
        return self

    @property
    def problem_type(self) -> str:
        """The type of its baselines' outputs, as `problem_type` in transformers: a softmax, or sigmoids."""
        return "single_label_classification"

    def read(self, rows: "Rows", column: str, on_bad: "OnBadRow") -> "tuple[Rows, np.ndarray]":
        """The rows with a usable label in `column`, and these labels [n, ...]. `on_bad` is called for each other
        row."""
        ...

    def strata(self, labels: "np.ndarray | None", rows: int) -> "np.ndarray":
        """The stratum of each row, int64 [n]: rows are set aside for validation within each stratum. All rows are in
        stratum 0 where there are no labels."""
        ...

    @property
    def least_together(self) -> int:
        """The fewest rows of a stratum in a batch, or on a side of the split, that has any of them: 2 for a target that
        compares them with each other."""
        return 1

    def why_not_scored(self, labels: "np.ndarray | None", metric: str | None = None) -> str | None:
        """Why no model can be scored on rows with these labels [n, ...], or no checkpoint chosen by `metric` on them: a
        clause that follows "the test rows". None if there is no reason."""
        return None

    def label_bytes(self, labels: "np.ndarray | None", rows: int) -> bytes:
        """The bytes of the labels of `rows` rows, for the digest that identifies a run's data."""
        ...

    def profile(self) -> dict[str, Any]:
        """The target's fields of `DataProfile`: statistics of the training rows' labels."""
        return {}

    def notes(self) -> list[str]:
        """Sentences about oddities of the labels, for the user."""
        return []

    def labels(self, examples: "Examples", inputs: "Mapping[str, np.ndarray]") -> "np.ndarray":
        """The labels of a batch, [n, ...]. `inputs` is what `Input.batch` returned for the same examples: the next
        token is a label that follows from the inputs."""
        ...

    def unlabelled(self, rows: int) -> "np.ndarray":
        """The labels [n, ...] of rows that only a teacher labels, all -1."""
        raise ValueError("a teacher labels classes")

    def loss(self, spec: "Classifier") -> "Loss":
        """The loss for training a classifier on such rows."""
        return spec.loss

    def objective(self, spec: "TrainJobSpec | None", module: Any) -> "Objective":
        """The objective for training and scoring `module`. A target without labels needs no spec for scoring. Raises
        UserError if the spec does not fit the labels."""
        ...

    def answer(self, outputs: "Tensor", module: Any) -> "pa.Table | None":
        """The answer to each row, from the network's outputs [n, ...]: the columns that `trainjob predict` writes.
        None for a language model, which generates its answers."""
        ...

    @property
    def reply_type(self) -> "type[Reply]":
        """The type of `replies`. Raises ValueError where there are none."""
        ...

    def replies(self, outputs: "Tensor", module: Any) -> "Sequence[Reply]":
        """The same answers, one for each row, in the form of `trainjob serve` and `trainjob predict --text`."""
        ...

    @property
    def judge(self) -> "Judge":
        """Compares predictions with labels. Raises ValueError where there are none."""
        ...

    def constant(self, rows: int) -> "Guesses":
        """A baseline that ignores the inputs: the most frequent class or the mean, repeated for each of `rows` rows."""
        raise ValueError(_NO_BASELINE)

    def linear(
        self, features: Any, labels: "np.ndarray", held: Any, held_labels: "np.ndarray | None" = None
    ) -> "Guesses":
        """A baseline that is linear in the features [n, f] of the training rows, whose labels are [n, ...]: its
        predictions for the rows with the features `held` [m, f]. Both may be sparse matrices of SciPy. `held_labels`
        tell an embedder which of these rows have a text in common."""
        raise ValueError(_NO_BASELINE)

    @property
    def tree_objective(self) -> dict[str, Any]:
        """The objective of LightGBM that fits this target. Raises ValueError where there is none."""
        raise ValueError(_NO_BASELINE)

    def tree_labels(self, labels: "np.ndarray") -> "list[np.ndarray]":
        """The labels [n] that each of LightGBM's models learns, of these [n, ...]. It keeps them as float32."""
        return [labels]

    def tree_outputs(self, predicted: "list[np.ndarray]") -> "np.ndarray":
        """Converts the predictions of each of these models with this objective, [n] or [n, classes], to outputs as a
        network has them, float64 [n, width]."""
        raise ValueError(_NO_BASELINE)

    def standardized(self, numbers: "np.ndarray") -> "np.ndarray":
        """Converts labels from their own unit to what the network learns, float64 [n, ...]; classes have no unit."""
        return numbers

    def boosted(self, outputs: "np.ndarray") -> "Guesses":
        """The predictions of boosted trees with these outputs, float64 [n, width]."""
        raise ValueError(_NO_BASELINE)

    def decoded(self, predictions: "pa.Table") -> "pa.Table":
        """The predictions of `Objective.predictions` as they are stored: with names instead of indices."""
        return predictions

    @property
    def has_threshold(self) -> bool:
        """Whether the report chooses a threshold for the answers, which also needs the predictions of the validation
        rows."""
        return False

    def save(self) -> dict[str, Any]:
        """The target's fields of preprocessor.json."""
        ...
