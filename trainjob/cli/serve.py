"""`trainjob serve`"""

import os
from dataclasses import replace
from importlib.util import find_spec
from math import ceil
from typing import TYPE_CHECKING, Annotated

import typer

from trainjob import interrupts
from trainjob.cli.cluster_options import Context, Namespace
from trainjob.cli.named_run import RunName, named_run
from trainjob.cli.options import Overrides
from trainjob.cli.output import say
from trainjob.errors import UserError
from trainjob.runs.files import TRAINJOB, VARIANTS

if TYPE_CHECKING:
    from trainjob.api import TrainJob
    from trainjob.storage import Folder


def serve(
    run: RunName,
    overrides: Overrides,
    variant: Annotated[
        str | None, typer.Option(metavar="NAME", help="A variant of the run's model, such as int8, lightgbm or tfidf.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 means all addresses of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    manifest: Annotated[
        bool,
        typer.Option(
            "--manifest", help="Serve nothing; print a KubeRay RayService that serves the model on a cluster."
        ),
    ] = False,
    context: Context = None,
    namespace: Namespace = None,
) -> None:
    """Answer requests with a trained model over HTTP.

    SIGTERM or Ctrl-C ends it when the requests until then are answered. --set is for --manifest, and changes fields of
    the TrainJob of the run, from which the pods are made.
    """
    from trainjob.runs.model import is_language_model, model_folder

    folder = named_run(run, context, namespace)
    if "://" not in folder.uri:
        folder = replace(folder, uri=os.path.abspath(folder.uri))
    chosen = model_folder(folder, variant)
    if is_language_model(chosen):
        raise UserError(
            f"{run} is a language model, which continues texts, and `trainjob serve` answers rows: use `trainjob "
            f"predict`, or give {chosen.uri} to a server of language models, such as vLLM"
        )
    if manifest:
        print(_manifest(folder, variant, overrides), end="")
        return
    if overrides:
        raise UserError("--set is for --manifest: serving on this machine does not depend on the TrainJob")
    if find_spec("fastapi") is None:
        raise UserError("serving needs more packages: pip install 'trainjob[serve]'")

    from trainjob.serving.config import Served
    from trainjob.serving.server import serve_here

    served = Served(folder=chosen.uri, name=_name(folder, variant), endpoint=chosen.endpoint)
    say(f"{served.name}: starting", error=True)
    try:
        serve_here(
            served,
            host,
            port,
            on_ready=lambda: say(f"{served.name}: http://{_shown(host)}:{port}/", error=True),
            on_stop=lambda: say(f"{served.name}: stopping once the open requests are answered", error=True),
        )
    except KeyboardInterrupt:
        raise typer.Exit(interrupts.exit_code()) from None


def _name(run: "Folder", variant: str | None) -> str:
    name = run.uri.rstrip("/").rpartition("/")[2]
    return f"{name} ({variant})" if variant else name


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _manifest(run: "Folder", variant: str | None, overrides: list[str]) -> str:
    """The RayService and, before it, the NetworkPolicy of its pods, in YAML."""
    from trainjob.api.kubernetes_yaml import as_yaml_file
    from trainjob.serving.config import ENVIRONMENT, PORT, Served, serve_config
    from trainjob_operator.network_policy import serving_policy
    from trainjob_operator.ray_service import ray_service
    from trainjob_operator.settings import Settings

    job = _job(run, overrides)
    if job.spec.pods.image is None:
        raise UserError("no image given: use the one that trained the model: --set spec.pods.image=IMAGE")
    settings = Settings(image=job.spec.pods.image)
    location = _in_the_cluster(run, job)
    folder = f"{location}/{VARIANTS}/{variant}" if variant else location
    served = Served(
        folder=folder, name=_name(run, variant), endpoint=job.spec.storage.endpoint if job.spec.storage else None
    )
    cpus = job.spec.workers.cpus or settings.defaults.worker_cpus
    config = serve_config(served, ceil(cpus), job.spec.workers.gpus)
    documents = [
        serving_policy(job, settings.network, PORT),
        ray_service(job, settings, cpus, config, ENVIRONMENT),
    ]
    return as_yaml_file(*documents)


def _job(run: "Folder", overrides: list[str]) -> "TrainJob":
    """The run's TrainJob with the overrides."""
    from trainjob.api.load import load_trainjob
    from trainjob.redaction import has_hidden
    from trainjob.runs.refusals import not_a_run
    from trainjob.scratch import scratch_folder

    if not run.exists(TRAINJOB):
        raise not_a_run(run, TRAINJOB)
    with scratch_folder() as copy:
        run.download(TRAINJOB, copy / TRAINJOB)
        job = load_trainjob(copy / TRAINJOB, overrides)
    if names := [str(variable["name"]) for variable in job.spec.pods.env if has_hidden(str(variable.get("value")))]:
        raise UserError(
            f"spec.pods.env: a run's folder does not have the value of {', '.join(names)}, which may be secret: "
            "pass it again, --set 'spec.pods.env=[{name: NAME, value: VALUE}]', or better from a Secret"
        )
    return job


def _in_the_cluster(run: "Folder", job: "TrainJob") -> str:
    """The URI at which the pods find the run."""
    from trainjob.api.cluster import STORAGE_PATH

    if "://" in run.uri:
        return run.uri.rstrip("/")
    storage = job.spec.storage
    name = _name(run, None)
    if storage is not None and storage.persistent_volume_claim is not None:
        return f"{STORAGE_PATH}/{name}"
    if storage is not None and "://" in str(storage.uri):
        return f"{str(storage.uri).rstrip('/')}/{name}"
    raise UserError(
        f"{run.uri} is on this machine, where a cluster's pods cannot read it: copy it to s3:// or gs:// and give that "
        "folder, or name the volume that holds it: --set 'spec.storage={persistentVolumeClaim: NAME}'"
    )
