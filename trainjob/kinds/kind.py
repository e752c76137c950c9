"""Protocols of a kind of model: `Kind` joins a fitted `Input` and a fitted `Target` with a network.

`trainjob.kinds.registry` finds a kind by its field in `spec.model`. Code outside of `trainjob/kinds/` asks the kind,
its input and its target, and does not branch on which kind it is.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from torch import Tensor

    from trainjob.api import Dataset, Loss, Source, TrainJobSpec
    from trainjob.data.batches.examples import Examples
    from trainjob.data.first_pass.survey import FittedOn
    from trainjob.data.read.bad_rows import BadRows
    from trainjob.data.read.chunking import Mapper
    from trainjob.data.read.image_tables import ReadTable
    from trainjob.data.read.rows import OnBadRow, Rows, SourcePart
    from trainjob.evaluation import Scores
    from trainjob.evaluation.estimates import Judge
    from trainjob.kinds.classifier import Classifier
    from trainjob.kinds.facts import Facts
    from trainjob.kinds.reply import Reply
    from trainjob.models.objective import Objective
    from trainjob.models.trainable import Trainable

Where = Callable[[int], str]
"""Says where the row at an index comes from, for error messages."""


class Guesses(NamedTuple):
    """The predictions of a baseline."""

    predicted: "np.ndarray"
    """[n, ...], as labels are read."""
    probabilities: "np.ndarray | None" = None
    """The probabilities of these predictions, float32 [n]; None if it has none."""


class Input(Protocol):
    """Turns rows into the arrays that a network takes. It is fitted on the training rows and knows no labels.

    Picklable: workers and Ray tasks get a copy.
    """

    noun: ClassVar[str]
    """The noun for one row in messages: a singular such as "text" or "image"."""
    packs: ClassVar[bool]
    """Whether `transform` joins short rows and cuts long ones, so that it returns another number of rows."""
    value_type: "ClassVar[pa.DataType]"
    """The type of the values of a prepared row, such as int32 for tokens."""

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        ...

    @property
    def row_bytes(self) -> int:
        """The average memory of a prepared row."""
        ...

    def contents(self, table: "pa.Table", where: Where) -> list[bytes]:
        """The raw content of each row: equal rows have equal contents, and the split hashes them."""
        ...

    def is_empty(self, content: bytes) -> bool:
        """Whether a row with this content holds nothing to learn from, which the data profile counts."""
        ...

    def check(self, rows: "Rows") -> None:
        """Raises RowError for the first row that `transform` cannot use."""
        ...

    def transform(self, table: "pa.Table", where: Where) -> "pa.Array":
        """Prepared rows: a list of values each. Raises DataError for rows that cannot be used."""
        ...

    def batch(self, examples: "Examples") -> "dict[str, np.ndarray]":
        """The network's inputs by name, each [n, ...], of prepared rows."""
        ...

    def alone(self) -> "Input":
        """The input of rows to answer, which may be a part of a training row."""
        ...

    def table(self, rows: "Sequence[Any] | np.ndarray", where: Where) -> "pa.Table":
        """Rows as a Python user gives them to `Predictor`, as a table with `columns`. Raises UserError for others."""
        ...

    def parts(self, found: "Sequence[SourcePart]", column: str | None, read: "ReadTable") -> "Sequence[SourcePart]":
        """Readers of rows to predict, of the parts `found` of a source. `column` holds the content of rows, where it is
        known; `read` reads a table."""
        ...

    def question(self, most_rows: int) -> type[Any]:
        """The requests of `trainjob serve`, with up to `most_rows` rows: a pydantic model."""
        ...

    def example(self) -> dict[str, Any]:
        """A request that the model answers."""
        ...

    @property
    def form_columns(self) -> list[str]:
        """The columns that people fill in on the page of `trainjob serve`; empty where they choose a file."""
        ...

    def plain(self, rows: "Rows") -> "list[str] | np.ndarray | pa.Table":
        """The features for a baseline: the text of each row, numbers [n, features], or the columns of a table: float64
        with NaN for missing numbers, and int64 for categories."""
        ...

    def most_plain_rows(self, width: int) -> int:
        """The number of rows of a set that a baseline with `width` outputs processes in seconds."""
        ...

    def cut_share(self, texts: "Sequence[str]") -> float | None:
        """The fraction of these training texts that `transform` truncates; None if it never does."""
        ...

    def check_export(self, folder: Path, texts: "Sequence[str]") -> None:
        """Raises DataError where transformers, given the model's files in `folder`, would tokenize these training
        texts in another way than `transform`."""
        ...

    def excerpts(self, rows: "Rows", mistakes: "np.ndarray") -> "dict[str, pa.Array]":
        """Columns that show the rows to people, kept beside the predictions: texts, or thumbnails of the `mistakes`,
        indices of rows whose wrong predictions the report shows."""
        ...

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes the files that lie beside preprocessor.json, and returns the fields of preprocessor.json."""
        ...


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
    def width(self) -> int:
        """The number of outputs for each row; 0 where a row has one answer for each token."""
        ...

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

    def read(self, rows: "Rows", column: str, on_bad: "OnBadRow") -> "tuple[Rows, np.ndarray]":
        """The rows with a usable label in `column`, and these labels [n, ...]. `on_bad` is called for each other
        row."""
        ...

    def strata(self, labels: "np.ndarray | None", rows: int) -> "np.ndarray":
        """The stratum of each row, int64 [n]: rows are set aside for validation within each stratum. All rows are in
        stratum 0 where there are no labels."""
        ...

    def label_bytes(self, labels: "np.ndarray | None", rows: int) -> bytes:
        """The labels of so many rows for the digest by which a run recognizes its data."""
        ...

    def profile(self) -> dict[str, Any]:
        """Its fields of `DataProfile`: statistics of the training rows' labels."""
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
        """The loss that a classifier of such rows is trained with."""
        return spec.loss

    def objective(self, spec: "TrainJobSpec | None", module: Any) -> "Objective":
        """The objective by which `module` is trained and scored. A target without labels needs no spec for scoring.
        Raises UserError if the spec does not fit the labels."""
        ...

    def answer(self, outputs: "Tensor", module: Any) -> "pa.Table | None":
        """The answer to each row, from the network's outputs [n, ...]: the columns that `trainjob predict` writes.
        None where outputs are no answer, as those of a language model, which generates."""
        ...

    @property
    def reply_type(self) -> "type[Reply]":
        """The type of `replies`. Raises ValueError where there are none."""
        ...

    def replies(self, outputs: "Tensor", module: Any) -> "Sequence[Reply]":
        """The same answers, one by one, as `trainjob serve` sends them and `trainjob predict --text` shows them."""
        ...

    @property
    def judge(self) -> "Judge":
        """Compares predictions with labels. Raises ValueError where there are none."""
        ...

    def constant(self, rows: int) -> "Guesses":
        """A baseline that looks at no row: the most frequent class or the mean, as often as there are `rows`."""
        raise ValueError("there are no baselines for this kind of model")

    def linear(
        self, features: Any, labels: "np.ndarray", held: Any, held_labels: "np.ndarray | None" = None
    ) -> "Guesses":
        """A baseline that is linear in the features [n, f] of the training rows, whose labels are [n, ...]: its
        predictions for the rows with the features `held` [m, f]. Both may be sparse matrices of SciPy. `held_labels`
        tell an embedder which of these rows have a text in common."""
        raise ValueError("there are no baselines for this kind of model")

    @property
    def tree_objective(self) -> dict[str, Any]:
        """The objective of LightGBM that fits this target. Raises ValueError where there is none."""
        raise ValueError("there are no baselines for this kind of model")

    def tree_outputs(self, predicted: "np.ndarray") -> "np.ndarray":
        """Outputs as a network has them, float64 [n, width], of LightGBM's predictions with this objective: [n], or
        [n, classes]."""
        raise ValueError("there are no baselines for this kind of model")

    def boosted(self, outputs: "np.ndarray") -> "Guesses":
        """The predictions of trees with these outputs, float64 [n, width]."""
        raise ValueError("there are no baselines for this kind of model")

    def decoded(self, predictions: "pa.Table") -> "pa.Table":
        """The predictions of `Objective.predictions` as they are stored: with names instead of indices."""
        return predictions

    @property
    def has_threshold(self) -> bool:
        """Whether the report chooses a threshold of the answers, for which the predictions of the validation rows are
        kept, too."""
        return False

    def save(self) -> dict[str, Any]:
        """The target's fields of preprocessor.json."""
        ...


class Kind(Protocol):
    """A kind of model: fits an input and a target, and builds, saves and loads the network between them."""

    @property
    def facts(self) -> "Facts": ...

    def label_column(self, dataset: "Dataset") -> str | None:
        """The column with the labels; None where rows need none."""
        ...

    def parts(self, dataset: "Dataset", source: "Source", endpoint: str | None, labelled: bool) -> "list[SourcePart]":
        """The parts of a source, as readers of this kind's rows. Raises DataError where the source holds others, such
        as images for a text classifier."""
        ...

    def fit(
        self,
        dataset: "Dataset",
        spec: Any,
        train: "Sequence[SourcePart]",
        seed: int,
        mapped: "Mapper",
        bad: "BadRows",
        /,
    ) -> "FittedOn":
        """Fits input and target on the training rows, which `mapped` reads. `spec` is the kind's own section of
        `spec.model`. Rows that cannot be used are counted in `bad`. Raises DataError where nothing can be trained."""
        ...

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[Input, Target]:
        """The input and the target that were saved in `folder`; `state` are the other fields of preprocessor.json,
        and `saved_as` the kind that it names, which is `facts.field` or one of `facts.earlier_names`."""
        ...

    def build(self, spec: Any, fitted_input: Any, target: Any, as_stored: bool, /) -> "Trainable[Any]":
        """A new network for a section of `spec.model` and what `fit` fitted, as `trainjob.models.build` describes."""
        ...

    def load(self, folder: Path, fitted_input: Any, /) -> "Trainable[Any]":
        """The network that is saved in `folder`. A kind may also have `load_to_answer`, which takes the same; see
        `only_to_answer` of `trainjob.models.load_model`."""
        ...

    def worker_modules(self, spec: Any) -> list[str]:
        """Modules that workers import while the data is prepared, because they import transformers, which is slow."""
        ...
