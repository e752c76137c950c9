"""The run that a command's argument names: a folder, or the run of a TrainJob on a cluster."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob.cli.cluster_options import completed_names, open_client, repeated
from trainjob.client.folders import open_folder, started_run
from trainjob.errors import UserError

if TYPE_CHECKING:
    from trainjob.storage import Folder

RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's folder (a path, s3:// or gs://), or a TrainJob on the cluster.",
        show_default=False,
        autocompletion=completed_names,
    ),
]

_OF_RUNS = {"trainjob.yaml", "attempts.json", "model", "config.json", "adapter_config.json", "checkpoint.json"}
"""Files of runs, models and checkpoints: a folder has at least one."""


def is_path(name: str) -> bool:
    """Whether `name` is a path or a URI, as a TrainJob's name has no slash."""
    return "/" in name or name in (".", "..")


def is_run(name: str, context: str | None, namespace: str | None) -> bool:
    """Whether `name` is a folder: it is a path with a slash or a URI or, unless the options name a cluster or
    namespace, a folder in the current one."""
    return is_path(name) or (context is None and namespace is None and os.path.isdir(name))


def changeable_run(name: str, context: str | None, namespace: str | None, command: str) -> "Folder":
    """The same for `command`, which changes the run: also raises UserError if it is on a cluster's volume."""
    folder = named_run(name, context, namespace)
    if folder.uri.startswith("volume://"):
        raise UserError(
            f"{name}: its volume can only be read from here: `trainjob pull {name}{repeated(context, namespace)} "
            f"--what all`, then `trainjob {command} ./{os.path.basename(name)}`"
        )
    return folder


def named_run(name: str, context: str | None, namespace: str | None) -> "Folder":
    """The folder of the run. Raises UserError if there is neither a folder nor a TrainJob of this name, or if the
    TrainJob has not begun to train."""
    if is_run(name, context, namespace):
        folder = open_folder(name)
        if not is_path(name) and not _OF_RUNS & set(folder.list()):
            raise UserError(f"the folder {name} here holds no run; the TrainJob of this name is `-n NAMESPACE {name}`")
        return folder
    try:
        client = open_client(context, namespace)
        job = client.job(name)
    except UserError as error:
        if context is None and namespace is None:
            message = f"there is no folder {name} here; as for a TrainJob of this name: {error}"
            raise type(error)(message) from None
        raise
    return started_run(client, job, repeated(context, namespace))
