"""What loading any network of transformers needs."""

from collections.abc import Generator
from contextlib import contextmanager

from transformers.configuration_utils import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.utils import logging

from trainjob.errors import UserError


def refuse_code(name: str, shown: str, cached_only: bool) -> None:
    """Raises UserError where the model's config.json names code to run: a class beside it that transformers does not
    have, or a kernel from the hub for its attention."""
    config, _ = PreTrainedConfig.get_config_dict(name, local_files_only=cached_only)
    if "auto_map" in config and config.get("model_type") not in CONFIG_MAPPING:
        raise UserError(
            f"{shown}: config.json says that the model needs code of its own (auto_map), which is never run; "
            "take a model whose model_type transformers has"
        )
    for key in ("attn_implementation", "_attn_implementation"):
        if "/" in str(config.get(key)):
            raise UserError(
                f"{shown}: config.json names code from the hub ({key}), which is never run; take that line out"
            )


@contextmanager
def quiet() -> Generator[None]:
    """Without progress bars and without the list of the head's weights that a pretrained checkpoint does not have."""
    verbosity, progress_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if progress_bars:
            logging.enable_progress_bar()
