"""Names on the Hugging Face hub: distinguishes them from folders, and looks them up once, before the hub's client
retries for a minute."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from trainjob.errors import DataError

HUB_SECONDS = 8

_from_cache: ContextVar[bool] = ContextVar("from_cache", default=False)


@contextmanager
def from_cache(cached: bool = True) -> Generator[None]:
    """Within the block, if `cached`, models come only from the cache, because another process has just downloaded
    them."""
    token = _from_cache.set(cached)
    try:
        yield
    finally:
        _from_cache.reset(token)


def may_be_downloaded(name: str | None) -> bool:
    """Whether the model `name`, if there is one, may have to be copied to this machine before it is loaded."""
    return name is not None and not Path(name).is_dir()


def is_cached_only(name: str, field: str) -> bool:
    """Whether the model `name` must come from the cache, because the hub does not answer or need not be asked; False
    for a folder. `field` is the field that names it.

    Raises DataError if there is neither such a folder nor such a model on the hub, or offline in the cache.
    """
    if _from_cache.get():
        return not Path(name).is_dir()
    return _is_unreachable(name, field)


@cache
def _is_unreachable(name: str, field: str) -> bool:
    if Path(name).is_dir():
        return False
    if Path(name).is_absolute():
        raise DataError(f"{field}: there is no folder {name}")
    from huggingface_hub import HfApi, constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        HfApi().model_info(name, timeout=HUB_SECONDS)
    except HFValidationError:
        raise DataError(f"{field}: {name} is neither a folder nor a name on the Hugging Face hub") from None
    except RepositoryNotFoundError:
        raise DataError(
            f"{field}: the Hugging Face hub has no model {name}, and there is no such folder; if it is private, set "
            "HF_TOKEN"
        ) from None
    except Exception as error:  # of the HTTP library that the hub's client happens to use
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return True
        raise DataError(
            f"{field}: {constants.ENDPOINT} cannot be reached to load {name} ({error}); connect to the network, or "
            "give a folder with the model"
        ) from None
    return False
