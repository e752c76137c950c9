"""The `trainjob` command. Each command is a file beside this one and imports what it needs when it runs."""

import atexit
import faulthandler
import os
import sys
import warnings
from textwrap import dedent, indent
from typing import Annotated, Any

import typer

from trainjob import interrupts
from trainjob.cli.baseline import baseline
from trainjob.cli.compare import compare
from trainjob.cli.compress import compress
from trainjob.cli.evaluate import evaluate
from trainjob.cli.merge import merge
from trainjob.cli.output import say
from trainjob.cli.predict import predict
from trainjob.cli.push import push
from trainjob.cli.report import report
from trainjob.cli.run import run
from trainjob.cli.serve import serve
from trainjob.cli.validate import validate
from trainjob.cli.version import print_version, version
from trainjob.errors import Alarm, Notice, UserError

app = typer.Typer(
    name="trainjob",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
EXAMPLES = {
    run: """
        trainjob run trainjob.yaml
        trainjob run trainjob.yaml --set spec.training.epochs=3 --workers 1
        trainjob run trainjob.yaml --set 'spec.storage={uri: s3://runs}'
        trainjob run trainjob.yaml --fresh""",
    validate: """
        trainjob validate trainjob.yaml
        trainjob validate trainjob.yaml --set spec.dataset.label=tag
        trainjob validate trainjob.yaml --data""",
    evaluate: """
        trainjob evaluate runs/tags holdout.csv
        trainjob evaluate runs/tags s3://data/holdout.parquet --json""",
    predict: """
        trainjob predict runs/tags --text "Quantum dots"
        trainjob predict runs/tags new.csv --output predictions.parquet
        trainjob predict runs/tags new.csv --cascade 0.8
        trainjob predict s3://runs/digits --image 7.png --image 9.png""",
    baseline: """
        trainjob baseline runs/tags
        trainjob baseline runs/tags --set 'spec.baselines={tfidf: {}}'
        trainjob baseline s3://runs/tags --json""",
    compress: """
        trainjob compress runs/tags --int8
        trainjob compress runs/tags --prune 0.5 --onnx --int8""",
    merge: """
        trainjob merge runs/answers models/answers
        trainjob merge s3://runs/answers s3://models/answers""",
    compare: """
        trainjob compare runs/tags runs/tags-small
        trainjob compare runs/tags s3://runs/tags --output compared.html""",
    serve: """
        trainjob serve runs/tags
        trainjob serve runs/tags --variant int8 --port 8080
        trainjob serve s3://runs/tags --manifest --set spec.pods.image=registry/trainer:0.1.0""",
    push: """
        trainjob push runs/tags my-team/tags""",
    report: """
        trainjob report runs/tags
        trainjob report s3://runs/tags --output report.html""",
    version: """
        trainjob version""",
}
"""The commands, in the order in which the help lists them, and examples of each."""

for command, examples in EXAMPLES.items():
    app.command(epilog=f"\b\nExamples:\n{indent(dedent(examples).strip(), '  ')}")(command)


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train a model from one YAML file, on this machine or on a Kubernetes cluster."""


_show_warning = warnings.showwarning


_noticed: set[str] = set()


def _show_notice(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """Each notice once, on a line of its own, in red where it puts the result in doubt; other warnings as ever."""
    if issubclass(category, Notice):
        if str(message) in _noticed:  # Python forgets what it has shown whenever a library changes the filters
            return
        _noticed.add(str(message))
    if issubclass(category, Alarm):
        say(f"warning: {message}", error=True, colour=typer.colors.RED)
    elif issubclass(category, Notice):
        say(f"note: {message}", error=True, colour=typer.colors.YELLOW)
    else:
        _show_warning(message, category, *place)


def _mute_finalization() -> None:
    """Discards what native libraries print while Python ends: nanobind lists hundreds of triton's objects as leaked."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def main() -> None:
    """Runs the command line. A UserError ends it with its message alone and exit code 2, a signal with 128 and the
    signal's number; a crash of native code tells where it was."""
    faulthandler.enable()
    atexit.register(_mute_finalization)  # the first to be registered is called last
    interrupts.handle_signals()
    warnings.showwarning = _show_notice  # pyrefly: ignore[bad-assignment]
    try:
        app()
    except UserError as error:
        say(str(error), error=True, colour=typer.colors.RED)
        sys.exit(2)
    except SystemExit as end:
        if end.code and interrupts.received() is not None:  # typer exits with the same code whatever the signal
            sys.exit(interrupts.exit_code())
        raise
