"""`spec.model.causalLM`."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.kinds.facts import SCRATCH_RATE, TABLE_FORMATS, ColumnFields, Facts
from trainjob.kinds.usage import Library, Usage, usage_of_generator
from trainjob.schema.base import OneOf, StrictModel
from trainjob.schema.expressions import given, setting
from trainjob.schema.fields import Dropout, LayerName, PositiveInt, Pretrained
from trainjob.schema.rules import FieldRule, RuledModel, remainder

_FINE_TUNING_RATE = 2e-5
"""A pretrained language model has more knowledge to lose than an encoder."""
_LORA_RATE = 2e-4
"""An adapter starts at zero, and the pretrained weights do not change."""


class Decoder(RuledModel):
    """A Llama-style transformer decoder trained from scratch, with its own byte-level BPE tokenizer."""

    layers: PositiveInt = 4
    """Transformer layers."""
    hidden_size: PositiveInt = 256
    """Width of the decoder; a multiple of 2 * `heads`."""
    heads: PositiveInt = 4
    """Attention heads of each layer."""
    dropout: Dropout = 0.0
    """Probability of dropping an attention weight."""
    vocabulary_size: Annotated[int, Field(ge=300, le=1_000_000)] = 8192
    """Maximum size of the tokenizer's vocabulary, learned from the training texts; 256 of its tokens are single
    bytes."""

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        divides = setting(cls, "hiddenSize").is_multiple_of(setting(cls, "heads") * 2)
        message = "must be a multiple of 2 * heads"
        return (FieldRule("hiddenSize", message, divides, lambda own: remainder(own.hidden_size, 2 * own.heads)),)


class LoRA(StrictModel):
    """Low-rank matrices trained beside linear layers of a frozen pretrained network."""

    rank: Annotated[int, Field(ge=1, le=65_536)] = 16
    """Rank of the adapter's matrices."""
    alpha: Annotated[float | None, Field(gt=0)] = None
    """The adapter's output is scaled by alpha / `rank`; by default, twice the rank."""
    dropout: Dropout = 0.0
    """Probability of dropping an input value of the adapter."""
    target_modules: Annotated[list[LayerName], Field(min_length=1, max_length=100)] | None = None
    """Names of linear layers, such as `q_proj`, or suffixes of their paths; by default all except the output layer."""


class CausalLM(RuledModel, OneOf):
    """A language model that continues texts."""

    choices: ClassVar[tuple[str, ...]] = ("pretrained", "decoder")
    facts: ClassVar[Facts] = Facts(
        field="causalLM",
        noun="language model",
        hub_task="text-generation",
        scores=("trainjob.evaluation.scores.tokens:LanguageScores",),
        needs_dataset=True,
        formats=TABLE_FORMATS,
        columns=ColumnFields(
            allowed=("text", "prompt", "completion", "messages"),
            required={
                ("text", "prompt", "completion", "messages"): (
                    "is required by model.causalLM, or prompt and completion, or messages"
                )
            },
        ),
        metrics={"validation_loss": "min", "validation_perplexity": "min", "train_loss": "min"},
        abilities=frozenset({"tuning", "sharding", "generation"}),
        usual_baselines=(),
        not_tuned=("maxLength", "decoder.vocabularySize", "decoder.hiddenSize", "decoder.heads"),
        earlier_names=("continuation",),
    )

    pretrained: Pretrained | None = None
    """A transformers decoder: a name on the Hugging Face hub or a folder, also on s3:// or gs://."""
    decoder: Decoder | None = None
    """A small decoder trained from scratch."""
    max_length: Annotated[int, Field(ge=8, le=131_072)] = 512
    """Tokens of a training row: shorter texts are packed together, longer ones are split."""
    lora: LoRA | None = None
    """Train an adapter instead of the pretrained decoder itself; `{}` for the default adapter."""

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        message = "needs a pretrained decoder: all weights of a new one must be trained"
        return (FieldRule("lora", message, ~given("lora") | given("pretrained")),)

    @property
    def description(self) -> str:
        adapter = f", adapter of rank {self.lora.rank}" if self.lora is not None else ""
        return f"Language model, {self.pretrained or 'trained from scratch'}{adapter}"

    @property
    def worker_modules(self) -> list[str]:
        """Modules of its network, which workers import before the driver has prepared the rows."""
        return ["trainjob.kinds.causal_lm.network"]

    @property
    def library(self) -> Library:
        if self.lora is not None:
            return Library(
                "peft",
                "from peft import AutoPeftModelForCausalLM\n\n"
                'model = AutoPeftModelForCausalLM.from_pretrained("FOLDER")  # loads the decoder and adds the adapter',
            )
        return Library(
            "transformers",
            "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
            'tokenizer = AutoTokenizer.from_pretrained("FOLDER")\n'
            'model = AutoModelForCausalLM.from_pretrained("FOLDER")',
        )

    def usage(self, uri: str) -> Usage:
        return usage_of_generator(uri)

    @property
    def usual_learning_rate(self) -> float:
        if self.pretrained is None:
            return SCRATCH_RATE
        return _FINE_TUNING_RATE if self.lora is None else _LORA_RATE
