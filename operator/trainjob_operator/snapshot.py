"""The TrainJob as the driver reads it: written to an annotation of the head pod and read back from a RayJob."""

import json
from collections.abc import Mapping
from typing import Any, cast

import yaml

from trainjob.api import TrainJob
from trainjob.api.cluster import STORAGE_PATH
from trainjob_operator.errors import RayJobError
from trainjob_operator.names import SPEC_ANNOTATION

MAX_SNAPSHOT_BYTES = 200_000
"""Kubernetes limits all annotations of an object to 256 KiB."""

_ONLY_IN_A_CLUSTER = {
    "head",
    "pods",
    "deadlines",
    "notify",
    "managed_by",
    "ttl_after_finished",
    "ray_job_ttl_after_finished",
    "suspend",
    "cancel",
}


def snapshot(job: TrainJob, cpus: float) -> str:
    """The TrainJob as YAML, without the fields that only concern the cluster. Raises RayJobError if it is too large for
    an annotation, or if `pods` is too large for the operator, which reads all pods of a job."""
    spec = job.spec.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=_ONLY_IN_A_CLUSTER)
    spec["workers"] = spec.get("workers", {}) | {"cpus": cpus}
    storage = job.spec.storage
    if storage is not None and storage.persistent_volume_claim is not None:
        spec["storage"] = {"uri": STORAGE_PATH} | ({"endpoint": storage.endpoint} if storage.endpoint else {})
    metadata = {"name": job.metadata.name, "namespace": job.metadata.namespace, "uid": job.metadata.uid}
    document = {"apiVersion": job.api_version, "kind": job.kind, "metadata": metadata, "spec": spec}
    _refuse_if_longer(_compact(job.spec.pods.model_dump(mode="json")), "pods, which each pod of the job repeats")
    _refuse_if_longer(_compact(document), "function.config")  # before writing YAML, which is far slower
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=MAX_SNAPSHOT_BYTES)
    _refuse_if_longer(text, "function.config")
    return text


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _refuse_if_longer(text: str, what: str) -> None:
    if len(text.encode(errors="replace")) > MAX_SNAPSHOT_BYTES:
        raise RayJobError("SpecTooLarge", f"the spec has more than {MAX_SNAPSHOT_BYTES} bytes: shorten {what}")


def keep_config(job: TrainJob, ray_job: Mapping[str, Any] | None) -> tuple[TrainJob, RayJobError | None]:
    """`job` with the `function.config` of its RayJob, and an error if it asks for another one. The CRD's rules cannot
    forbid such a change, as they do not know the keys."""
    function = job.spec.model.function
    config = _config_of(ray_job) if function is not None and ray_job is not None else None
    if function is None or config is None or not (config or function.config):
        return job, None
    model = job.spec.model.model_copy(update={"function": function.model_copy(update={"config": config})})
    restored = job.model_copy(update={"spec": job.spec.model_copy(update={"model": model})})
    if _canonical(config) == _canonical(function.config):
        return restored, None
    message = "spec.model.function.config cannot be changed once the job has a RayJob; the RayJob keeps its config"
    return restored, RayJobError("ConfigChanged", message)


def workers_of(head: Mapping[str, Any]) -> dict[str, Any] | None:
    """`spec.workers` in the snapshot of a head pod or its template; None if it is missing or unreadable."""
    return _field_of(head, "workers")


def _config_of(ray_job: Mapping[str, Any]) -> dict[str, Any] | None:
    """`function.config` in a RayJob's snapshot; None if somebody has made it unreadable, which counts as drift."""
    head = ray_job["spec"].get("rayClusterSpec", {}).get("headGroupSpec", {}).get("template", {})
    function = _field_of(head, "model", "function")
    config = {} if function is None else function.get("config", {})
    return cast("dict[str, Any]", config) if function is not None and isinstance(config, dict) else None


def _field_of(head: Mapping[str, Any], *path: str) -> dict[str, Any] | None:
    """A field of the spec in a snapshot; None if it is missing or unreadable."""
    try:
        found: Any = yaml.load(head["metadata"]["annotations"][SPEC_ANNOTATION], yaml.CSafeLoader)
        for name in ("spec", *path):
            found = found[name]
    except (KeyError, TypeError, AttributeError, ValueError, yaml.YAMLError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _canonical(config: Mapping[str, Any]) -> str:
    return json.dumps(config, sort_keys=True, default=str)


class _Dumper(yaml.CSafeDumper):
    """Quotes every string: unquoted, some would be read as other types."""


_Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))
