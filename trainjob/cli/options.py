"""Arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

TrainJobFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="YAML file with one TrainJob; - is standard input.", show_default=False),
]
VariantOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Use this variant of the run's model: a smaller one, made by `trainjob compress`, or a baseline: "
        "`lightgbm`, `linear` or `tfidf`.",
    ),
]
Overrides = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        default_factory=list,
        show_default=False,
        help="Override a field, such as --set spec.training.epochs=3; may be repeated.",
    ),
]
