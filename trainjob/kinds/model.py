"""`spec.model`: the model to train."""

from typing import Annotated, Any, Self

from pydantic import Field

from trainjob.kinds.causal_lm.spec import CausalLM
from trainjob.kinds.classifier import Classifier
from trainjob.kinds.facts import Facts
from trainjob.kinds.function.spec import Function
from trainjob.kinds.image_classifier.spec import ImageClassifier
from trainjob.kinds.image_regressor.spec import ImageRegressor
from trainjob.kinds.table_classifier.spec import TableClassifier
from trainjob.kinds.table_regressor.spec import TableRegressor
from trainjob.kinds.text_classifier.spec import TextClassifier
from trainjob.kinds.text_embedder.spec import TextEmbedder
from trainjob.kinds.text_regressor.spec import TextRegressor
from trainjob.kinds.token_classifier.spec import TokenClassifier
from trainjob.schema.base import OneOf

KindSpec = (
    TextClassifier
    | TextRegressor
    | TokenClassifier
    | TextEmbedder
    | ImageClassifier
    | ImageRegressor
    | TableClassifier
    | TableRegressor
    | CausalLM
    | Function
)
"""The section of any kind. The registry of kinds follows from it."""


class Model(OneOf):
    """The model to train: exactly one of these."""

    text_classifier: TextClassifier | None = None
    """One label for each text."""
    text_regressor: TextRegressor | None = None
    """One number for each text."""
    token_classifier: TokenClassifier | None = None
    """The spans of each text, such as names, each with a type."""
    text_embedder: TextEmbedder | None = None
    """A vector for each text; texts that belong together are close."""
    image_classifier: ImageClassifier | None = None
    """One label for each image."""
    image_regressor: ImageRegressor | None = None
    """One number for each image."""
    table_classifier: TableClassifier | None = None
    """One label for each row of a table."""
    table_regressor: TableRegressor | None = None
    """One number for each row of a table."""
    causal_lm: Annotated[CausalLM | None, Field(alias="causalLM")] = None
    """A language model that continues texts."""
    function: Function | None = None
    """Your own Ray Train loop."""

    @property
    def kind(self) -> KindSpec:
        """The spec of the chosen kind of model."""
        return getattr(self, self.chosen)

    @property
    def facts(self) -> Facts:
        return self.kind.facts

    @property
    def classifier(self) -> Classifier | None:
        return self.text_classifier or self.image_classifier or self.table_classifier

    @property
    def pretrained(self) -> str | None:
        """The name, folder or URI of the pretrained network; None if training starts from scratch."""
        return getattr(self._parts_with_pretrained[-1], "pretrained", None)

    def with_pretrained(self, name: str) -> Self:
        """The same model with another pretrained network."""
        *parents, part = self._parts_with_pretrained
        changed = part.model_copy(update={"pretrained": name})
        for parent, field in zip(reversed(parents), reversed(self.facts.pretrained_part), strict=True):
            changed = parent.model_copy(update={field: changed})
        return self.model_copy(update={self.chosen: changed})

    @property
    def _parts_with_pretrained(self) -> list[Any]:
        """The kind's section, and the parts in it on the way to the one that names a pretrained network."""
        parts: list[Any] = [self.kind]
        for field in self.facts.pretrained_part:
            parts.append(getattr(parts[-1], field, None))
        return parts

    @property
    def max_length(self) -> int | None:
        """Maximum tokens of a row; None for kinds without tokens."""
        return getattr(self.kind, "max_length", None)
