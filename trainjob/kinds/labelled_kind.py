"""The common code of classifiers and regressors: an input and the target of the labels are joined."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainjob.api import Dataset
from trainjob.data.first_pass.survey import LabelReader
from trainjob.kinds.facts import Facts
from trainjob.kinds.kind import Kind

if TYPE_CHECKING:
    from trainjob.kinds.data_preview import DataPreview, Proposal


class LabelledKind(Kind):
    """A kind that joins an input, which one subclass reads, and the target of labels, which another one reads."""

    facts: Facts

    @abstractmethod
    def label_reader(self, dataset: Dataset, spec: Any) -> LabelReader:
        """Reads the labels of the training rows."""

    @abstractmethod
    def load_target(self, state: dict[str, Any]) -> Any:
        """The target that was saved with these fields of preprocessor.json."""

    @abstractmethod
    def label_candidates(self, preview: "DataPreview") -> "DataPreview":
        """The columns that may hold labels. Raises Unsuitable for data without the input of this kind."""

    @abstractmethod
    def proposal(self, preview: "DataPreview", fields: Mapping[str, Any], why: str) -> "Proposal":
        """The proposal with these fields of the dataset, which name the labels, and the reason if they are guessed."""
