"""The `trainjob` command. Each command is a file beside this one and imports what it needs when it runs."""

import faulthandler
import sys

import typer

from trainjob.cli.evaluate import evaluate
from trainjob.cli.predict import predict
from trainjob.cli.report import report
from trainjob.cli.run import run
from trainjob.cli.validate import validate
from trainjob.cli.version import version
from trainjob.errors import UserError

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


def main() -> None:
    """Runs the command line; a UserError ends it with its message alone and exit code 2, and a crash of
    native code tells where it was."""
    faulthandler.enable()
    try:
        app()
    except UserError as error:
        typer.secho(str(error), fg=typer.colors.RED, err=True)
        sys.exit(2)
