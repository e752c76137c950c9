"""`trainjob doctor`"""

import json
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trainjob.cli.cluster_options import Context, Namespace, open_client
from trainjob.cli.output import console, printable, printable_json, say
from trainjob.errors import UserError

if TYPE_CHECKING:
    from trainjob.api.storage import Storage
    from trainjob.doctor.findings import Finding

_MARKS = {"ok": "✓", "wrong": "✗", "unknown": "\N{EN DASH}"}
_COLORS = {"ok": typer.colors.GREEN, "wrong": typer.colors.RED, "unknown": None}
_INDENT = "    "
_MIN_WIDTH = 40


def doctor(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="YAML file with a TrainJob, whose image, storage, queue, service account and node pool are tried.",
            show_default=False,
        ),
    ] = None,
    storage: Annotated[
        str | None, typer.Option(metavar="URI", help="Storage to try; by default the TrainJob's, or the operator's.")
    ] = None,
    secret: Annotated[
        str | None, typer.Option(metavar="NAME", help="Secret with the credentials of --storage.")
    ] = None,
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long to wait for the pod, which may have to pull the image.")
    ] = "2m",
    output: Annotated[Literal["json"] | None, typer.Option("--output", "-o", metavar="FORMAT", help="json.")] = None,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Check whether a cluster can run TrainJobs.

    ✗ marks a problem, with its remedy, and a dash something that is not installed or cannot be seen. The last checks
    start a pod like a TrainJob's; it pulls the image and writes, reads and deletes a small file in the storage, and is
    deleted. The exit code is 1 if there is a problem.
    """
    from trainjob.api.load import load_trainjob
    from trainjob.cli.wait import duration_seconds

    chosen = _storage(storage, secret)
    job = load_trainjob(file) if file is not None else None
    seconds = duration_seconds(timeout, "--timeout") or 0
    client = open_client(context, namespace or (job.metadata.namespace if job is not None else None))

    from trainjob.doctor.examination import examine

    width, found = console().width, list["Finding"]()
    for finding in examine(client.connection, job, chosen, seconds, lambda text: say(f"note: {text}", error=True)):
        found.append(finding)
        if output is None:
            first, *more = finding_lines(finding, width)
            typer.echo(typer.style(first[0], fg=_COLORS[finding.state]) + printable(first[1:]))
            for line in more:
                say(line)
    if output is not None:
        print(printable_json(json.dumps([each._asdict() for each in found], indent=2, ensure_ascii=False)))
    if any(each.state == "wrong" for each in found):
        raise typer.Exit(1)


def finding_lines(finding: "Finding", width: int) -> list[str]:
    """A finding in lines of at most `width` columns, unless a word is longer. A remedy is one line, to be copied."""
    text = " ".join(f"{finding.check}: {finding.message}".split())
    room = max(width, _MIN_WIDTH) - len(_INDENT)
    first, *more = wrap(text, room, break_long_words=False, break_on_hyphens=False)
    remedy = [f"{_INDENT}→ {' '.join(finding.remedy.split())}"] if finding.remedy else []
    return [f"{_MARKS[finding.state]} {first}", *(f"{_INDENT}{line}" for line in more), *remedy]


def _storage(uri: str | None, secret: str | None) -> "Storage | None":
    from pydantic import ValidationError

    from trainjob.api.storage import Storage

    if uri is None:
        if secret is not None:
            raise UserError("--secret goes with --storage URI")
        return None
    if "://" not in uri:
        raise UserError(f"--storage: a pod cannot reach {uri}; give it as s3:// or gs://, or a volume in a FILE")
    try:
        return Storage.model_validate({"uri": uri} | ({"secretName": secret} if secret is not None else {}))
    except ValidationError as error:
        raise UserError(f"--storage: {error.errors()[0]['msg']}") from None
