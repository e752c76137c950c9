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
from trainjob_operator.access import Access
from trainjob_operator.run import Operator
from trainjob_operator.settings import load_settings
from trainjob_operator.settings_file import await_other_settings

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def about() -> None:
    """Makes RayJobs of TrainJobs."""


@app.command()
def run(
    settings: Annotated[Path, typer.Option(help="YAML file with the operator's settings.")],
    port: Annotated[int, typer.Option(help="Port of /healthz, /readyz and /metrics.")] = 8080,
    lease_namespace: Annotated[
        str | None, typer.Option(help="Namespace of the Lease that says which of several replicas works.")
    ] = None,
    progress_policy: Annotated[
        str | None,
        typer.Option(help="ValidatingAdmissionPolicy that says who may report progress: nothing is done without it."),
    ] = None,
) -> None:
    """Run until stopped."""
    try:
        loaded = load_settings(settings)
        _log()
        operator = Operator(loaded, Access(loaded.namespaces, progress_policy))
        other_settings = partial(await_other_settings, settings, loaded)
        begins_anew = asyncio.run(operator.run(port, lease_namespace, other_settings))
    except UserError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if begins_anew:
        os.execv(sys.executable, sys.orig_argv)


def _log() -> None:
    """One JSON object a line, with the job's name where it is about one."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("kopf").setLevel(logging.WARNING)


def main() -> None:
    app()
