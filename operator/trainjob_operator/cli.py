"""The `trainjob-operator` command."""

import asyncio
import logging
import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pythonjsonlogger.json import JsonFormatter

from trainjob.errors import UserError
from trainjob_operator.access import AccessCheck
from trainjob_operator.run import Operator
from trainjob_operator.settings import load_settings
from trainjob_operator.settings_file import wait_for_new_settings

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def about() -> None:
    """Creates a RayJob for each TrainJob."""


@app.command()
def run(
    settings: Annotated[Path, typer.Option(help="YAML file with the operator's settings.")],
    port: Annotated[int, typer.Option(help="Port of /healthz, /readyz and /metrics.")] = 8080,
    lease_namespace: Annotated[
        str | None, typer.Option(help="Namespace of the Lease that elects the leader among several replicas.")
    ] = None,
    progress_policy: Annotated[
        str | None,
        typer.Option(
            help="ValidatingAdmissionPolicy that restricts who may report progress; the operator waits for it."
        ),
    ] = None,
) -> None:
    """Run until stopped."""
    try:
        loaded = load_settings(settings)
        _log()
        operator = Operator(loaded, AccessCheck(loaded.namespaces, progress_policy))
        other_settings = partial(wait_for_new_settings, settings, loaded)
        must_restart = asyncio.run(operator.run(port, lease_namespace, other_settings))
    except UserError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if must_restart:
        os.execv(sys.executable, sys.orig_argv)


def _log() -> None:
    """Logs one JSON object per line, with the job's name if the line is about a job."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("kopf").setLevel(logging.WARNING)


def main() -> None:
    app()
