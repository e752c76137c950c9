"""The language model as a `trainjob.kinds.kind.Kind`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainjob.api import CausalLM, Dataset, Source
from trainjob.data.read.rows import SourcePart
from trainjob.kinds.causal_lm.fit import fit_language_model
from trainjob.kinds.causal_lm.row_layout import layout_of
from trainjob.kinds.causal_lm.tokens import TokensInput
from trainjob.kinds.inputs.parts import table_parts
from trainjob.kinds.kind import Kind
from trainjob.kinds.targets.next_token import NextToken

if TYPE_CHECKING:
    from trainjob.kinds.causal_lm import network


class CausalLMKind(Kind):
    facts = CausalLM.facts
    fit = staticmethod(fit_language_model)

    def label_column(self, dataset: Dataset) -> None:
        return None

    def parts(self, dataset: Dataset, source: Source, endpoint: str | None, labelled: bool) -> list[SourcePart]:
        layout = layout_of(dataset)
        return table_parts(source, endpoint, labelled, self.facts.field, layout.nested, layout.optional)

    def load_fitted(self, folder: Path, state: dict[str, Any], saved_as: str) -> tuple[TokensInput, NextToken]:
        return TokensInput.load(folder, state), NextToken()

    def build(
        self, spec: CausalLM, tokens: TokensInput, target: NextToken, as_stored: bool
    ) -> "network.CausalLMModule":
        from trainjob.kinds.causal_lm import network

        return network.build(spec, tokens, as_stored)

    def load(self, folder: Path, tokens: TokensInput) -> "network.CausalLMModule":
        from trainjob.kinds.causal_lm import network

        return network.load(folder, tokens)


KIND = CausalLMKind()
