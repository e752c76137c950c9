"""Jobs in Kueue's queues: pure functions of the TrainJob, its RayJob and Kueue's Workloads."""

from collections.abc import Iterator, Sequence

from trainjob.api import TrainJob
from trainjob.api.cluster import KubernetesObject
from trainjob_operator.errors import RayJobError
from trainjob_operator.head import Object
from trainjob_operator.names import MANAGER, QUEUE_LABEL


def hold_queue(job: TrainJob, ray_job: Object | None) -> tuple[TrainJob, RayJobError | None]:
    """The job with the queue that its RayJob can have now, and an error if the job asks for another one.

    Kueue refuses to change the queue of a running RayJob. It would start a RayJob that the user has suspended, so such
    a RayJob enters a queue only when it is resumed.
    """
    if ray_job is None or is_in_queue(job, ray_job):
        return job, None
    current_queue, is_suspended = queue_of(ray_job), ray_job.get("spec", {}).get("suspend")
    if is_suspended and (current_queue is not None or not job.spec.suspend):
        return job, None
    held = with_queue(job, current_queue)
    if is_suspended:
        return held, None
    stays = "it runs without a queue" if current_queue is None else f"it stays {current_queue}"
    message = f"the label {QUEUE_LABEL} cannot change while the RayJob runs; {stays}: suspend the job first"
    return held, RayJobError("QueueChanged", message)


def is_in_queue(job: TrainJob, ray_job: Object) -> bool:
    """Whether the RayJob is in the queue that the job asks for. A job without a queue may be in the namespace's default
    queue, whose label Kueue adds when the RayJob is created."""
    asked, found = job.metadata.labels.get(QUEUE_LABEL), queue_of(ray_job)
    return asked == found or (asked is None and not _is_set_by_operator(ray_job, "metadata", "labels", QUEUE_LABEL))


def with_queue(job: TrainJob, queue: str | None) -> TrainJob:
    """The job with this queue in its labels, or with none."""
    labels = {name: value for name, value in job.metadata.labels.items() if name != QUEUE_LABEL}
    if queue is not None:
        labels[QUEUE_LABEL] = queue
    return job.model_copy(update={"metadata": job.metadata.model_copy(update={"labels": labels})})


def queue_of(ray_job: Object | None) -> str | None:
    return ((ray_job or {}).get("metadata", {}).get("labels") or {}).get(QUEUE_LABEL)


def keep_tolerations(desired: KubernetesObject, ray_job: Object) -> None:
    """Copies the tolerations that Kueue added when it started the RayJob into `desired`. Server-side apply replaces the
    whole list, and Kueue stops a RayJob that loses them."""
    for wanted, found in zip(pod_specs(desired), pod_specs(ray_job), strict=False):
        if "tolerations" in wanted:
            rendered = wanted["tolerations"]
            wanted["tolerations"] = rendered + [each for each in found.get("tolerations") or () if each not in rendered]


def pod_specs(ray_job: Object) -> Iterator[KubernetesObject]:
    """The specs in a RayJob's pod templates: submitter, head, workers."""
    spec = ray_job["spec"]
    cluster = spec.get("rayClusterSpec") or {}
    groups = [cluster.get("headGroupSpec") or {}, *(cluster.get("workerGroupSpecs") or ())]
    for template in (spec.get("submitterPodTemplate"), *(group.get("template") for group in groups)):
        yield (template or {}).get("spec") or {}


def was_deactivated_by_operator(workload: Object) -> bool:
    """Whether the operator was the last to set a Workload's `spec.active`."""
    return _is_set_by_operator(workload, "spec", "active")


def _is_set_by_operator(found: Object, *path: str) -> bool:
    """Whether the operator was the last to set the field at this path. A label added by a webhook has no field
    manager."""
    for entry in found["metadata"].get("managedFields", []):
        fields = entry.get("fieldsV1") if entry["manager"] == MANAGER else None
        for name in path:
            fields = (fields or {}).get(f"f:{name}")
        if fields is not None:
            return True
    return False


def queue_message(job: TrainJob, workloads: Sequence[Object]) -> str:
    """Why the job is queued."""
    for workload in workloads:
        if not workload.get("spec", {}).get("active", True):
            name = workload["metadata"]["name"]
            return _joined(f"the Workload {name} is deactivated: its spec.active is false", eviction_message(workloads))
        for condition in workload.get("status", {}).get("conditions", []):
            if condition["type"] in ("QuotaReserved", "Admitted") and condition["status"] == "False":
                return _joined(condition.get("message", ""), eviction_message(workloads))
    queue = job.metadata.labels.get(QUEUE_LABEL)
    return f"waits in the queue {queue}" if queue else "the RayJob is suspended by another controller"


def eviction_message(workloads: Sequence[Object]) -> str:
    """A sentence on Kueue's evictions of the job, with their number and the last reason; empty if there are none."""
    for workload in workloads:
        status = workload.get("status", {})
        last = next((each for each in status.get("conditions", []) if each["type"] == "Evicted"), None)
        if last is None:
            continue
        counted = status.get("schedulingStats", {}).get("evictions", [])
        number = sum(each.get("count", 0) for each in counted)
        reasons = ", ".join(dict.fromkeys(each["reason"] for each in counted)) or last.get("reason", "")
        often = f"{number} times" if number > 1 else "once"
        return f"Kueue has evicted the job {often} ({reasons}): {last.get('message', '')}".removesuffix(": ")
    return ""


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
