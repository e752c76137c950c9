"""`trainjob submit`"""

import hashlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainjob import interrupts
from trainjob.cli.cluster_options import Context, Namespace, open_client, repeated
from trainjob.cli.options import Overrides, TrainJobFile
from trainjob.cli.output import say
from trainjob.client.folders import open_folder
from trainjob.errors import UserError

if TYPE_CHECKING:
    from trainjob.cluster import ClusterJob
    from trainjob.cluster.client import ClusterClient

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Letters that Kubernetes uses in generated names: no vowels, and no look-alikes."""
_SUFFIX = 5
_MAX_NAME_CHARACTERS = 253
_UPLOADS = ".code"
"""Folder in the job's storage with uploaded code."""


def submit(
    file: TrainJobFile,
    overrides: Overrides,
    name_suffix: Annotated[
        bool, typer.Option("--name-suffix", help="Add a random end to the TrainJob's name, to train once more.")
    ] = False,
    code: Annotated[
        Path | None,
        typer.Option(
            "--code",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Upload this folder, without what .gitignore excludes, to the job's storage as spec.code.",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Show how it goes until its end; Ctrl-C leaves it alone.")
    ] = False,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Check a TrainJob and apply its file to a cluster.

    All objects of the file are applied, such as a ConfigMap beside the TrainJob. With --wait the exit code is 1 where
    the TrainJob fails.
    """
    from trainjob.api.manifest import is_train_job, load_manifest
    from trainjob.api.spec_rules import IMMUTABLE
    from trainjob.cluster import ClusterJob, Refused

    documents = load_manifest(file, overrides)
    client = open_client(context, namespace)
    _check_namespaces(documents, namespace)
    if code is not None:
        _upload_code(code.resolve(), next(filter(is_train_job, documents)))
    submitted: ClusterJob | None = None
    for document in documents:
        if is_train_job(document) and name_suffix:
            document["metadata"]["name"] = _with_suffix(document["metadata"]["name"])
        try:
            applied = client.apply(document)
        except Refused as error:
            if IMMUTABLE not in str(error):
                raise
            raise Refused(f"{error}; --name-suffix submits it as another TrainJob") from None
        say(f"{applied.name} {applied.outcome}")
        if is_train_job(document):
            submitted = ClusterJob(applied.document)
    assert submitted is not None, "the file was checked to have a TrainJob"
    if submitted.has_ended:
        again = "--name-suffix trains once more, under a new name"
        say(f"note: {submitted.name} has ended before ({submitted.status.phase}); {again}", error=True)
    if wait:
        _follow(client, submitted, repeated(context, namespace))


def _upload_code(folder: Path, document: dict[str, Any]) -> None:
    """Uploads the folder to the job's storage, and names it in the job's `spec.code`."""
    storage = document["spec"].get("storage", {})
    if "uri" not in storage:
        raise UserError("--code needs spec.storage.uri in the file, because the code is uploaded there")
    uploads = open_folder(storage["uri"], storage.get("endpoint")) / _UPLOADS

    from trainjob.code.archive import pack

    archive = pack(folder)
    name = f"{hashlib.sha256(archive).hexdigest()}.tar.gz"
    if not uploads.exists(name):
        uploads.write(name, archive)
    document["spec"]["code"] = {"uri": f"{uploads.uri}/{name}"}
    say(f"uploaded {folder} ({len(archive) / 2**20:.1f} MiB) to {uploads.uri}/{name}")


def _check_namespaces(documents: list[dict[str, Any]], namespace: str | None) -> None:
    for document in documents:
        its_namespace = document["metadata"].get("namespace")
        if namespace is not None and its_namespace not in (None, namespace):
            name = f"{document['kind']} {document['metadata']['name']}"
            raise UserError(
                f"{name} is in the namespace {its_namespace}, and --namespace says {namespace}: leave one of them out"
            )


def _with_suffix(name: str) -> str:
    end = "".join(secrets.choice(_LETTERS) for _ in range(_SUFFIX))
    return f"{name[: _MAX_NAME_CHARACTERS - _SUFFIX - 1].rstrip('.-')}-{end}"


def _follow(client: "ClusterClient", job: "ClusterJob", options: str) -> None:
    """Shows a job's progress until its end. Exits with 1 if the job fails; Ctrl-C leaves the job running."""
    from trainjob.cli.progress import display

    latest, shown = job, ""
    try:
        with display(job.name) as progress:
            for latest in client.follow(job):
                if (now := " ".join(_state_words(latest))) != shown:
                    progress.show(shown := now)
                if latest.status.training is not None and latest.status.phase in ("Running", "Retrying"):
                    progress.update(latest.status.training)
                if latest.has_ended:
                    break
    except KeyboardInterrupt:
        name = f"{job.name}{options}"
        say(
            f"\n{job.name} keeps running: `trainjob describe {name}` shows it, `trainjob delete {name}` ends it",
            error=True,
        )
        raise typer.Exit(interrupts.exit_code()) from None
    if latest.status.phase == "Failed":
        say(f"`trainjob describe {job.name}{options}` says what to do", error=True)
        raise typer.Exit(1)


def _state_words(job: "ClusterJob") -> Iterator[str]:
    """Phase, the reason if it is another word, and the cluster's message."""
    status = job.status
    yield f"{job.name}: {status.phase or 'submitted; the operator has not seen it yet'}"
    if status.reason not in (None, status.phase):
        yield f"({status.reason})"
    if status.message and status.phase not in ("Running", "Succeeded"):
        yield status.message
