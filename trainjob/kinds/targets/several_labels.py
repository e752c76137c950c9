"""Each row has any number of labels."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import pyarrow as pa

from trainjob.api import Loss, TrainJobSpec
from trainjob.api.data_profile import FEW_ROWS
from trainjob.data.batches.examples import Examples
from trainjob.data.read.csv_injection import OF_CLASS, PREDICTION
from trainjob.data.read.label_lists import empty_label_error, labels_in, list_error, notation_of
from trainjob.data.read.rows import OnBadRow, Rows, as_text
from trainjob.errors import listed
from trainjob.evaluation.label_estimates import LabelJudge, name_lists
from trainjob.kinds.classifier import SEVERAL_LABELS_LOSS
from trainjob.kinds.look_alikes import look_alike_notes
from trainjob.kinds.target import Guesses, Target
from trainjob.kinds.targets.class_baselines import one_vs_rest
from trainjob.kinds.targets.labels_reply import LabelsReply, labels_replies

if TYPE_CHECKING:
    from torch import Tensor

    from trainjob.evaluation import Scores
    from trainjob.evaluation.scores.labels import LabelsScores
    from trainjob.kinds.classifier import Classifier
    from trainjob.kinds.targets.labels_objective import LabelsObjective
    from trainjob.models.classifier import AnsweringClassifier

MAX_LABELS = 1000
MAX_COMBINATIONS, ROWS_OF_COMBINATION = 1000, 20
"""The most combinations of labels that are strata, and the fewest rows of such a combination."""
EMPTY_LIST = "[] is a row without a label"
USUAL_THRESHOLD = 0.5
SHOWN_LABELS, SHOWN_IN_ERRORS = 20, 10


@dataclass(frozen=True)
class SeveralLabels(Target):
    """The network has an output for each label, whose sigmoid is its probability: a row gets the labels that reach
    their thresholds. Labels are int8 [n, L]: 1 where the row has the label, 0 where it does not."""

    names: list[str]
    """The labels, in the order of the outputs."""
    rarest_first: list[int]
    """The labels' indices by their number of rows."""
    combinations: list[list[int]]
    """The frequent combinations, each as the sorted indices of its labels."""
    rows: int = 0
    """Training rows."""
    counts: Sequence[int] = ()
    """Training rows with each label."""
    without: int = 0
    """Training rows without a label."""
    thresholds: list[float] | None = None
    """The probability from which a row gets each label; None until the scores on the validation rows have chosen
    them."""

    @classmethod
    def of(cls, names: list[str], labels: np.ndarray) -> Self:
        """The target of the rows with these labels, training and validation."""
        rarest_first = np.argsort(labels.sum(axis=0, dtype=np.int64), kind="stable").tolist()
        found, rows = np.unique(np.packbits(labels, axis=1), axis=0, return_counts=True)
        chosen = np.argsort(-rows, kind="stable")[:MAX_COMBINATIONS]
        frequent = np.unpackbits(found[chosen[rows[chosen] >= ROWS_OF_COMBINATION]], axis=1, count=len(names))
        return cls(names, rarest_first, [np.flatnonzero(each).tolist() for each in frequent])

    @property
    def classes(self) -> list[str]:
        return self.names

    @property
    def width(self) -> int:
        return len(self.names)

    def sizes(self) -> dict[str, int]:
        return {"labels": len(self.names)}

    def in_words(self) -> str:
        largest = sorted(range(len(self.names)), key=lambda index: -self.counts[index])
        shown = ", ".join(f"{self.names[index]} ({self.counts[index]:,})" for index in largest[:SHOWN_LABELS])
        more = f" and {len(largest) - SHOWN_LABELS:,} more" if len(largest) > SHOWN_LABELS else ""
        mean = sum(self.counts) / max(self.rows, 1)
        without = f"; {self.without:,} training rows have none" if self.without else ""
        return (
            f"several labels a row, {mean:.2g} on average{without}. "
            f"{len(largest):,} labels; training rows of each: {shown}{more}"
        )

    def completed(self, labels: np.ndarray) -> Self:
        counts = labels.sum(axis=0, dtype=np.int64).tolist()
        return replace(self, rows=len(labels), counts=counts, without=int(np.sum(~labels.any(axis=1))))

    def decided(self, validation: "Scores") -> Self:
        return replace(self, thresholds=[each.threshold for each in cast("LabelsScores", validation).per_label])

    def for_baselines(self) -> Self:
        return replace(self, thresholds=[USUAL_THRESHOLD] * len(self.names))

    @property
    def problem_type(self) -> str:
        return "multi_label_classification"

    def read(self, rows: Rows, column: str, on_bad: OnBadRow) -> tuple[Rows, np.ndarray]:
        """The rows whose labels are all known. A cell that is the name of a label is that label."""
        encoded = as_text(rows.table[column], column, rows.where).combine_chunks().dictionary_encode("encode")
        cells = [(cell or "").strip() for cell in encoded.dictionary.to_pylist()]
        of_cell, problems = np.zeros((len(cells), len(self.names)), np.int8), dict[int, str]()
        indices = {name: index for index, name in enumerate(self.names)}
        for number, cell in enumerate(cells):
            if not cell:
                problems[number] = ""
                continue
            try:
                names = labels_in(cell, "plain" if cell in indices else notation_of(cell))
                if unknown := next((name for name in names if name not in indices), None):
                    known = listed(self.names, SHOWN_IN_ERRORS)
                    raise ValueError(
                        f'the label "{unknown}" does not occur in the training rows; known labels are {known}'
                    )
                of_cell[number, [indices[name] for name in names]] = 1
            except ValueError as error:
                problems[number] = str(error)
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        is_bad = np.isin(numbers, list(problems))
        for index in np.flatnonzero(is_bad).tolist():
            problem, location = problems[int(numbers[index])], rows.where(index)
            on_bad(
                list_error(location, column, problem) if problem else empty_label_error(location, column, EMPTY_LIST)
            )
        return rows.take(np.flatnonzero(~is_bad)), of_cell[numbers[~is_bad]]

    def strata(self, labels: np.ndarray | None, rows: int) -> np.ndarray:
        """Frequent combinations of labels are a stratum each. Another row is in the stratum of its rarest label, as
        iterative stratification (Sechidis, Tsoumakas and Vlahavas, 2011) sets rows aside for the rarest label first."""
        if labels is None:
            return np.zeros(rows, np.int64)
        by_rarity = labels[:, self.rarest_first].astype(bool)
        rarest = np.where(by_rarity.any(axis=1), by_rarity.argmax(axis=1), len(self.names))
        packed, inverse = np.unique(np.packbits(labels, axis=1), axis=0, return_inverse=True)
        numbers = {self._packed(each): number for number, each in enumerate(self.combinations)}
        frequent = np.array([numbers.get(each.tobytes(), -1) for each in packed], np.int64)[inverse]
        return np.where(frequent >= 0, frequent, len(self.combinations) + rarest)

    def _packed(self, combination: list[int]) -> bytes:
        row = np.zeros(len(self.names), np.uint8)
        row[combination] = 1
        return np.packbits(row).tobytes()

    def label_bytes(self, labels: np.ndarray | None, rows: int) -> bytes:
        return json.dumps(self.names).encode() + (b"" if labels is None else labels.tobytes())

    def profile(self) -> dict[str, Any]:
        facts = {"Labels": len(self.names), "Training rows without a label": self.without}
        return {"label_range": facts | {"Labels of a training row, mean": round(sum(self.counts) / self.rows, 3)}}

    def notes(self) -> list[str]:
        found: list[str] = []
        if rare := [name for name, count in zip(self.names, self.counts, strict=True) if count < FEW_ROWS]:
            found.append(
                f"{len(rare):,} of {len(self.names):,} labels have fewer than {FEW_ROWS} training rows: {listed(rare)}"
            )
        found += look_alike_notes("labels", dict(zip(self.names, self.counts, strict=True)))
        if len(self.names) > 1 and sum(self.counts) == self.rows - self.without:
            advice = "for a classifier that always gives one,"
            found.append(
                f"no training row has more than one label, and {self.without:,} have none: {advice} leave these out"
                if self.without
                else f"every training row has exactly one label: {advice} write the names into one column"
            )
        return found

    def labels(self, examples: Examples, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """float32 [n, L]."""
        assert examples.labels is not None, "these rows were prepared without labels"
        return examples.labels.astype(np.float32)

    def unlabelled(self, rows: int) -> np.ndarray:
        return np.full((rows, len(self.names)), -1, np.int8)

    def loss(self, spec: "Classifier") -> Loss:
        """Binary cross-entropy, even if an earlier version wrote the loss of one class into the spec."""
        return SEVERAL_LABELS_LOSS

    def objective(self, spec: TrainJobSpec | None, module: "AnsweringClassifier") -> "LabelsObjective":
        """Raises UserError if the class weights do not name exactly the labels."""
        from trainjob.kinds.targets.labels_objective import LabelsObjective

        if spec is None:
            raise ValueError("a classifier's weights of labels are in the spec")
        return LabelsObjective(spec, self, module)

    def given(self, probabilities: np.ndarray) -> np.ndarray:
        """The labels that rows with these probabilities [n, L] get, bool [n, L]."""
        thresholds = self.thresholds or [USUAL_THRESHOLD] * len(self.names)
        return probabilities.astype(np.float64) >= np.array(thresholds)

    def answer(self, outputs: "Tensor", module: "AnsweringClassifier") -> pa.Table:
        """The labels of each row, and the probability of each label, from logits [n, L]."""
        probabilities = module.probabilities(outputs).cpu().numpy()
        columns: dict[str, Any] = {PREDICTION: name_lists(self.given(probabilities), self.names)}
        return pa.table(columns | {f"{OF_CLASS}{name}": probabilities[:, i] for i, name in enumerate(self.names)})

    @property
    def reply_type(self) -> type[LabelsReply]:
        return LabelsReply

    def replies(self, outputs: "Tensor", module: "AnsweringClassifier") -> list[LabelsReply]:
        probabilities = module.probabilities(outputs).cpu().numpy()
        thresholds = self.thresholds or [USUAL_THRESHOLD] * len(self.names)
        return labels_replies(probabilities, self.given(probabilities), self.names, thresholds)

    @property
    def judge(self) -> LabelJudge:
        return LabelJudge(self.names)

    def constant(self, rows: int) -> Guesses:
        """The labels that more than half of the training rows have."""
        return Guesses(np.tile(np.array(self.counts) > self.rows / 2, (rows, 1)))

    def linear(self, features: Any, labels: np.ndarray, held: Any, held_labels: np.ndarray | None = None) -> Guesses:
        probabilities, weights = one_vs_rest(features, labels, held)
        return Guesses(probabilities >= USUAL_THRESHOLD, weights=weights)

    def save(self) -> dict[str, Any]:
        return {
            "labels": self.names,
            "rarest_first": self.rarest_first,
            "combinations": self.combinations,
            "label_rows": self.rows,
            "label_counts": list(self.counts),
            "rows_without_label": self.without,
            "thresholds": self.thresholds,
        }

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """Takes its fields out of the content of preprocessor.json."""
        return cls(
            state.pop("labels"),
            state.pop("rarest_first"),
            state.pop("combinations"),
            state.pop("label_rows"),
            state.pop("label_counts"),
            state.pop("rows_without_label"),
            state.pop("thresholds"),
        )
