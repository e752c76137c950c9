"""Reads TrainJobs that may be invalid, and builds patches of their status."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from trainjob.api import Metadata, TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob.api.earlier import as_written_now
from trainjob.api.names import OPERATOR
from trainjob.api.trainjob import TrainJobSpec
from trainjob.api.trainjob_status import TrainJobStatus, problems
from trainjob_operator.errors import RayJobError

_MUST_BE_UNCHANGED = ("phase", "attempt", "rayJobName", "headPodUID", "notifications")


def read_train_job(body: Mapping[str, Any]) -> tuple[TrainJob, RayJobError | None]:
    """The TrainJob, and an error if its spec is invalid because a CRD of another version admitted it. The spec's fields
    are then read one by one: the valid ones still act on an existing RayJob, but none can be rendered from them."""
    try:
        return TrainJob.model_validate({**as_written_now(body), "status": None}, by_alias=True, by_name=False), None
    except ValidationError as error:
        job = TrainJob.model_construct(
            api_version=body["apiVersion"],
            kind=body["kind"],
            metadata=Metadata.model_validate(body["metadata"]),
            spec=TrainJobSpec.model_construct(**_valid_fields(body["spec"])),
        )
        return job, RayJobError("InvalidSpec", problems(error))


def is_managed_by_another(body: Mapping[str, Any]) -> bool:
    """Whether a TrainJob names another controller than this operator, which leaves it alone."""
    return body["spec"].get("managedBy", OPERATOR) != OPERATOR


def status_patch(body: Mapping[str, Any], status: TrainJobStatus) -> list[KubernetesObject]:
    """JSON Patch that replaces all of a TrainJob's status except `training`.

    It fails if another TrainJob has the name by now (server-side apply would ignore the UID), or if the status has
    changed since it was read: the last write of an operator that lost its lease may arrive after those of the
    next one.
    """
    found: Mapping[str, Any] | None = body.get("status")
    wanted = status.model_dump(mode="json", by_alias=True, exclude={"training"}, exclude_none=True)
    patch: list[KubernetesObject] = [{"op": "test", "path": "/metadata/uid", "value": body["metadata"]["uid"]}]
    if found is None:
        patch.append({"op": "test", "path": "/status", "value": None})
        return [*patch, {"op": "add", "path": "/status", "value": wanted}]
    patch += [{"op": "test", "path": f"/status/{name}", "value": found.get(name)} for name in _MUST_BE_UNCHANGED]
    obsolete = found.keys() - wanted.keys() - {"training"}
    patch += [{"op": "add", "path": f"/status/{name}", "value": value} for name, value in wanted.items()]
    return patch + [{"op": "remove", "path": f"/status/{name}"} for name in obsolete]


def _valid_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a spec that are valid by themselves."""
    valid: dict[str, Any] = {}
    for name, info in TrainJobSpec.model_fields.items():
        with suppress(ValidationError, KeyError):
            valid[name] = _field_type(name).validate_python(spec[str(info.alias)], by_alias=True, by_name=False)
    return valid


@cache
def _field_type(name: str) -> TypeAdapter[Any]:
    """The type of one field of the spec, which validates the field without the others."""
    info = TrainJobSpec.model_fields[name]
    field: Any = Annotated[info.annotation, Field(), *info.metadata]  # pyrefly: ignore[not-a-type]
    return TypeAdapter(field)
