"""The `trainjob` command. Each command is a file beside this one and imports what it needs when it runs."""

import faulthandler
import sys
import warnings
from typing import Any

import typer

from trainjob.cli.evaluate import evaluate
from trainjob.cli.predict import predict
from trainjob.cli.report import report
from trainjob.cli.run import run
from trainjob.cli.validate import validate
from trainjob.cli.version import version
from trainjob.errors import Notice, UserError

app = typer.Typer(
    name="trainjob",
    help="Train a model from one YAML file, on this machine or on a Kubernetes cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (run, validate, evaluate, predict, report, version):
    app.command()(command)


_show_warning = warnings.showwarning


def _show_notice(message: Warning | str, category: type[Warning], *place: Any) -> None:
    """A notice on a line of its own, other warnings as ever."""
    if issubclass(category, Notice):
        typer.secho(f"note: {message}", fg=typer.colors.YELLOW, err=True)
    else:
        _show_warning(message, category, *place)


def main() -> None:
    """Runs the command line; a UserError ends it with its message alone and exit code 2, and a crash of
    native code tells where it was."""
    faulthandler.enable()
    warnings.showwarning = _show_notice
    try:
        app()
    except UserError as error:
        typer.secho(str(error), fg=typer.colors.RED, err=True)
        sys.exit(2)
