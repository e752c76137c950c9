"""Progress in a Jupyter notebook: the output of a cell is replaced while training goes on."""

import sys
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from trainjob.api.training_status import TrainingStatus
from trainjob.formatting import done


def live_display() -> Callable[[str], None]:
    """A function that shows HTML below the current cell, replacing what it showed before; does nothing outside of
    Jupyter."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return lambda _: None
    from IPython.display import HTML, display

    shown: Any = None

    def show(html: str) -> None:
        nonlocal shown
        if shown is None:
            shown = display(HTML(html), display_id=True)
        else:
            shown.update(HTML(html))

    return show


def progress_html(title: str, messages: Sequence[str], training: TrainingStatus | None) -> str:
    """A title in HTML, and messages and the state of training as plain texts."""
    lines = [title, *map(escape, filter(None, messages))]
    if training is not None and training.percent is not None:
        lines.append(f'<progress max="100" value="{training.percent:g}"></progress> {done(training.percent)}%')
    metrics = {} if training is None else training.evaluation or training.metrics
    if metrics:
        lines.append(", ".join(f"{escape(name)} {value:.4g}" for name, value in metrics.items()))
    return "<br>".join(lines)
