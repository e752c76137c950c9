"""A saved language model applied to new texts. No Ray."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from os import PathLike
from typing import Any, Self, cast

import torch
from transformers.tokenization_utils_tokenizers import PreTrainedTokenizerFast

from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.kinds.causal_lm.generation import special_tokens_only, stop_token_ids
from trainjob.kinds.causal_lm.network import CausalLMModule
from trainjob.kinds.causal_lm.row_layout import Prompt
from trainjob.kinds.causal_lm.tokens import TokensInput
from trainjob.models import load_language_model
from trainjob.runs.model import local_copy, model_folder
from trainjob.storage import Folder


@dataclass(frozen=True)
class Sampling:
    """Options for choosing the next token, and further texts that end the output."""

    max_new_tokens: int = 64
    temperature: float = 0.0
    """0 takes the most probable token; higher values draw less probable tokens more often."""
    top_p: float = 1.0
    """Tokens are drawn from the most probable ones whose probabilities add up to this."""
    stop: tuple[str, ...] = ()
    """Strings that end a text; they and what follows them are left out."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise UserError(f"max_new_tokens must be at least 1, got {self.max_new_tokens}")
        if not 0 <= self.temperature < float("inf"):
            raise UserError(f"temperature must be at least 0, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p must be greater than 0 and at most 1, got {self.top_p}")
        if "" in self.stop:
            raise UserError("a stop string must not be empty")


class TextGenerator:
    """A trained language model, on the GPU if there is one. Of its generation_config.json, only the tokens that end a
    text are used: each call sets how tokens are chosen, and a repetition penalty in that file has no effect.

    >>> generator = TextGenerator.load("runs/headlines")
    >>> generator.generate(["Once upon a time"], max_new_tokens=20)
    """

    def __init__(self, model: CausalLMModule, preprocessor: Preprocessor) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model, self.preprocessor = model.to(self.device).eval(), preprocessor
        self.tokens = cast("TokensInput", preprocessor.input)
        network: Any = model.network
        network.generation_config = special_tokens_only(network.generation_config)
        self._tokenizer = PreTrainedTokenizerFast(tokenizer_object=self.tokens.tokenizer)

    @classmethod
    def load(cls, uri: str | PathLike[str], endpoint: str | None = None) -> Self:
        """The best model of a run's folder, or the one in a model's or a checkpoint's; `uri` is a path, s3:// or gs://.

        Raises UserError if there is no language model, StorageError if the folder cannot be read.
        """
        with local_copy(model_folder(Folder(str(uri), endpoint))) as folder:
            return cls(*load_language_model(folder))

    def generate(
        self,
        prompts: Sequence[Prompt],
        batch_size: int = 16,
        where: Callable[[int], str] = lambda index: f"prompt {index + 1}",
        **sampling: Any,
    ) -> list[str]:
        """The continuation of each prompt, without the prompt. `sampling` are fields of Sampling, and `where` names a
        prompt in errors. A model that learned messages also takes conversations, and a text as a user's message.

        The same prompts, batches and seed give the same texts. Raises UserError for a prompt that is too long.
        """
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1, got {batch_size}")
        chosen = Sampling(**sampling)
        if isinstance(prompts, str):
            raise UserError("expected a list of prompts, not one: put it in a list")
        tokens = self.tokens.prompts(prompts, where)
        room = self._max_tokens() - chosen.max_new_tokens
        for index, prompt in enumerate(tokens):
            if len(prompt) > room:
                raise UserError(
                    f"{where(index)} has {len(prompt)} tokens; with {chosen.max_new_tokens} new ones at most "
                    f"{max(room, 0)} fit: shorten it or lower max_new_tokens"
                )
        torch.manual_seed(chosen.seed)
        starts = range(0, len(tokens), batch_size)
        return [text for start in starts for text in self._continuations(tokens[start : start + batch_size], chosen)]

    def _max_tokens(self) -> int:
        """The number of tokens that a prompt and its continuation may have together."""
        config = self.model.network.config.get_text_config()
        return getattr(config, "max_position_embeddings", None) or self.tokens.max_length

    @torch.inference_mode()
    def _continuations(self, prompts: list[list[int]], sampling: Sampling) -> list[str]:
        """The continuations of one batch of prompts. Padding is on the left, so that all prompts end where the new
        tokens begin."""
        longest, end = max(map(len, prompts)), self.tokens.end_token_id
        input_ids = torch.tensor([[end] * (longest - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        draws = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
        greedy = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        stops = {"stop_strings": list(sampling.stop), "tokenizer": self._tokenizer} if sampling.stop else {}
        generated = cast("Any", self.model.network).generate(
            input_ids=input_ids.to(self.device),
            attention_mask=mask.to(self.device),
            max_new_tokens=sampling.max_new_tokens,
            pad_token_id=end,
            **(draws if sampling.temperature > 0 else greedy),
            **stops,
        )
        ends = stop_token_ids(self.model.network)
        rows = (takewhile(lambda token: token not in ends, row) for row in generated[:, longest:].tolist())
        texts = (self.tokens.tokenizer.decode(list(row)) for row in rows)
        return [_before_stop(text, sampling.stop) for text in texts]


def _before_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the first of the strings `stop`."""
    return text[: min([text.find(each) for each in stop if each in text], default=len(text))]
