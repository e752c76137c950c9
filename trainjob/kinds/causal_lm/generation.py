"""Configures generation_config.json: the tokens at which a language model stops, and transformers' defaults for
sampling."""

from typing import Any, cast

from transformers.generation.configuration_utils import GenerationConfig
from transformers.modeling_utils import PreTrainedModel

from trainjob.kinds.causal_lm.stop_tokens import end_token_ids
from trainjob.kinds.causal_lm.tokens import TokensInput
from trainjob.models.pretrained import quiet

_OF_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff")


def set_stop_tokens(network: PreTrainedModel, tokens: TokensInput) -> None:
    """Makes generation stop at the tokens that end texts and answers in training, in addition to the network's own.
    Makes the configuration valid for transformers to save."""
    config: Any = cast("Any", network).generation_config
    ends = list(dict.fromkeys([*stop_token_ids(network), *end_token_ids(tokens)]))
    config.eos_token_id = ends if len(ends) > 1 else ends[0]
    if not _is_valid(config) and any(getattr(config, name) is not None for name in _OF_SAMPLING):
        config.do_sample = True  # transformers loads settings of sampling without it, but does not save them
    if not _is_valid(config):
        cast("Any", network).generation_config = special_tokens_only(config)


def stop_token_ids(network: PreTrainedModel) -> list[int]:
    """The tokens at which generation stops."""
    stops = cast("Any", network).generation_config.eos_token_id
    return [] if stops is None else stops if isinstance(stops, list) else [stops]


def special_tokens_only(config: Any) -> GenerationConfig:
    """Keeps only the special tokens of a generation configuration, so that only the network's probabilities and the
    caller's options determine the next token."""
    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    return GenerationConfig(**{name: getattr(config, name) for name in names})


def _is_valid(config: Any) -> bool:
    try:
        with quiet():
            config.validate(strict=True)
    except ValueError:
        return False
    return True
