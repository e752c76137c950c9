"""`trainjob compress`"""

from typing import TYPE_CHECKING, Annotated

import typer

from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import RunName, changeable_run
from trainjob.cli.output import console, printable_json, say
from trainjob.errors import UserError

if TYPE_CHECKING:
    from trainjob.runs.variants import Variants


def compress(
    run: RunName,
    int8: Annotated[bool, typer.Option("--int8", help="Make a variant with 8-bit weights.")] = False,
    prune: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Remove this share of attention heads and feed-forward channels, and train again.",
        ),
    ] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="Make a variant in the ONNX format, in full precision.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Derive smaller models from a run, and compare them.

    With --prune, --onnx and --int8 start from the pruned model. The report is written again.
    """
    if not (int8 or onnx or prune is not None):
        raise UserError("give at least one of --int8, --prune SHARE and --onnx")
    if prune is not None and not 0 < prune < 1:
        raise UserError(f"--prune {prune:g}: the share must be greater than 0 and less than 1")
    from trainjob.compress.variants import VariantRequest, compress

    variants = compress(
        changeable_run(run, context, namespace, "compress"),
        VariantRequest(prune, onnx, int8),
        lambda text: say(text, error=True),
    )
    if as_json:
        print(printable_json(variants.model_dump_json(by_alias=True, indent=2)))
    else:
        _show(variants)


def _show(variants: "Variants") -> None:
    from rich.text import Text

    from trainjob.cli.table import show_table
    from trainjob.report.variants import HEADINGS, remark, variants_table

    output = console(highlight=False)
    show_table(output, HEADINGS, variants_table(variants))
    output.print(Text(remark(variants)))
