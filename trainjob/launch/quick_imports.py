"""Importing large libraries quickly."""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


@contextmanager
def quick_imports() -> Generator[None]:
    """Disables the garbage collector for the time of the block: it would scan all loaded objects again and again, which
    takes a fifth of the time to import torch and transformers. Afterwards it ignores these objects, so forks continue
    to share their memory. transformers is imported without SciPy."""
    without_scipy = _WithoutSciPy()
    sys.meta_path.insert(0, without_scipy)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        sys.meta_path.remove(without_scipy)
        without_scipy.hide(False)


class _WithoutSciPy(MetaPathFinder):
    """Tells the losses of transformers that SciPy is not installed, whose import takes 0.45 s. They need it to find
    objects in images, which no kind of model does."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.startswith("transformers."):
            self.hide(fullname.startswith("transformers.loss."))

    def hide(self, hidden: bool) -> None:
        """Makes modules of transformers that are imported from now on believe that SciPy is missing, or ends that."""
        utils = sys.modules.get("transformers.utils")
        if hasattr(utils, "is_scipy_available"):
            installed = sys.modules["transformers.utils.import_utils"].is_scipy_available
            vars(utils)["is_scipy_available"] = (lambda: False) if hidden else installed
