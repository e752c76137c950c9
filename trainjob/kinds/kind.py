"""The protocol of a kind of model: it joins a fitted `Input` and a fitted `Target` with a network.

`trainjob.kinds.registry` finds a kind by its field in `spec.model`. Code outside of `trainjob/kinds/` asks the kind,
its input and its target, and does not branch on which kind it is.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import nn

    from trainjob.api import Dataset, Source
    from trainjob.data.first_pass.survey import FittedOn
    from trainjob.data.read.bad_rows import BadRows
    from trainjob.data.read.chunking import Mapper
    from trainjob.data.read.rows import SourcePart
    from trainjob.kinds.data_preview import DataPreview, Proposal
    from trainjob.kinds.facts import Facts
    from trainjob.kinds.input import Input
    from trainjob.kinds.target import Target
    from trainjob.models.trainable import Trainable


class Kind(Protocol):
    """A kind of model: fits an input and a target, and builds, saves and loads the network between them.

    A kind that derives from this class overrides the methods with a body only where it needs to.
    """

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
        mapper: "Mapper",
        bad: "BadRows",
        /,
    ) -> "FittedOn":
        """Fits input and target on the training rows, which `mapper` reads. `spec` is the kind's own section of
        `spec.model`. Rows that cannot be used are counted in `bad`. Raises DataError where nothing can be trained."""
        ...

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> "tuple[Input, Target]":
        """The input and the target that were saved in `folder`; `state` are the other fields of preprocessor.json,
        and `saved_as` the kind that it names, which is `facts.field` or one of `facts.earlier_names`."""
        ...

    def build(self, spec: Any, fitted_input: Any, target: Any, as_stored: bool, /) -> "Trainable[Any]":
        """A new network for a section of `spec.model` and what `fit` fitted, as `trainjob.models.build` describes."""
        ...

    def load(self, folder: Path, fitted_input: Any, /) -> "Trainable[Any]":
        """The network that is saved in `folder`."""
        ...

    def load_to_answer(self, folder: Path, fitted_input: Any, /) -> "nn.Module":
        """The same network for `only_to_answer` of `trainjob.models.load_model`; it need not be able to learn."""
        return self.load(folder, fitted_input)

    def propose(self, preview: "DataPreview") -> "Proposal":
        """A TrainJob of this kind for unknown data: by default, from `propose` of the module `propose` beside the
        kind's. Raises Unsuitable where the kind does not fit the data."""
        return import_module(type(self).__module__.removesuffix("kind") + "propose").propose(preview)
