"""`spec.model`: what is trained."""

from typing import Annotated

from pydantic import Field

from trainjob.kinds.causal_lm.spec import CausalLM
from trainjob.kinds.classifier import Classifier
from trainjob.kinds.facts import Facts
from trainjob.kinds.function.spec import Function
from trainjob.kinds.image_classifier.spec import ImageClassifier
from trainjob.kinds.text_classifier.spec import TextClassifier
from trainjob.schema.base import OneOf

KindSpec = TextClassifier | ImageClassifier | CausalLM | Function


class Model(OneOf):
    """What is trained: exactly one of these."""

    text_classifier: TextClassifier | None = None
    """One label for each text."""
    image_classifier: ImageClassifier | None = None
    """One label for each image."""
    causal_lm: Annotated[CausalLM | None, Field(alias="causalLM")] = None
    """A language model that continues texts."""
    function: Function | None = None
    """A Ray Train loop of your own."""

    @property
    def kind(self) -> KindSpec:
        """The part that is set."""
        return getattr(self, self.chosen)

    @property
    def facts(self) -> Facts:
        return self.kind.facts

    @property
    def classifier(self) -> Classifier | None:
        return self.text_classifier or self.image_classifier

    @property
    def pretrained(self) -> str | None:
        """The name, folder or URI of the pretrained network that training begins with, where there is one."""
        return getattr(self.kind, "pretrained", None)

    @property
    def max_length(self) -> int | None:
        """Most tokens of a row; None where rows have none."""
        return getattr(self.kind, "max_length", None)
