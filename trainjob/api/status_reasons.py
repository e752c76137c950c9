"""The meaning of each reason of a TrainJob's status, and the remedy, for docs/status.md and the command line."""

import re
from functools import cache
from typing import NamedTuple


class Explanation(NamedTuple):
    """A row of the table in docs/status.md, in Markdown."""

    reasons: str
    """Comma-separated."""
    phases: str
    """The phases in which the reasons occur."""
    meaning: str
    remedy: str
    """The user's next action."""


EXPLANATIONS = [
    Explanation(
        "Created",
        "Pending",
        "the RayJob is created; KubeRay has not seen it yet",
        "nothing; if it lasts, check that KubeRay runs",
    ),
    Explanation(
        "PodsStarting",
        "Pending, Retrying",
        "KubeRay is starting the pods; with Retrying, `message` says why the last attempt ended",
        "nothing",
    ),
    Explanation(
        "HeadLost",
        "Retrying",
        (
            "the head pod, where the driver runs, was lost or ran out of memory, and no driver has reported from "
            "a new one yet; it will continue from the latest checkpoint beside the same workers. `attempt` does "
            "not change, because the cluster is the same"
        ),
        (
            "nothing; if it ran out of memory, give the head more in a new TrainJob (`spec.head`; the default is the "
            "chart's `settings.defaults.head`); if nodes are lost often, find out why"
        ),
    ),
    Explanation(
        "NodeLost",
        "Pending, Retrying; with Running in `waiting` only",
        (
            "a pod's node has stopped answering; `message` names both. Kubernetes starts no replacement until it "
            "knows that this pod is gone for good"
        ),
        (
            "wait for the node, or take it out of service: delete it, or `kubectl taint node NODE "
            "node.kubernetes.io/out-of-service=:NoExecute`. Training then continues elsewhere from the latest "
            "checkpoint"
        ),
    ),
    Explanation(
        "PodsReady",
        "Starting, Retrying",
        "all pods are ready; the driver starts",
        "nothing",
    ),
    Explanation(
        "Resuming",
        "Pending",
        "the job was suspended, and KubeRay is starting it again",
        "nothing",
    ),
    Explanation(
        "Suspending",
        "Pending, Starting, Running, Retrying",
        "`spec.suspend` or `spec.cancel` is true or a queue holds the job, and KubeRay has not deleted its pods yet",
        (
            "nothing; if it lasts, check that KubeRay runs, and delete a RayCluster that the RayJob's status "
            "does not name: KubeRay forgets one that it creates while the job is suspended"
        ),
    ),
    Explanation(
        "RayJobDeleting",
        "Pending",
        (
            "the RayJob, or that of a deleted TrainJob of the same name, is being deleted, perhaps delayed by the "
            "finalizers that `message` names; the operator creates another one once it is gone"
        ),
        "find out which controller should remove those finalizers",
    ),
    Explanation(
        "Unschedulable",
        "Pending, Retrying",
        "the scheduler finds no node for a pod, or no PersistentVolumeClaim; `message` quotes it",
        "make room, ask for less, or name another node pool",
    ),
    Explanation(
        "ImagePullBackOff, ErrImagePull, InvalidImageName",
        "Pending, Retrying",
        "a container's image cannot be pulled",
        "fix the image's name or `spec.pods.imagePullSecrets`",
    ),
    Explanation(
        "CreateContainerConfigError",
        "Pending, Retrying",
        "a Secret or ConfigMap that a variable names is missing",
        "create it; the pod then starts by itself",
    ),
    Explanation(
        "CrashLoopBackOff",
        "Pending, Retrying",
        "a container keeps failing; `message` has its last exit code and the last line of its log",
        "see its log",
    ),
    Explanation(
        "FailedMount, FailedAttachVolume",
        "Pending, Retrying",
        "a volume cannot be mounted",
        "create the volume or object that `message` names; the pod then starts by itself",
    ),
    Explanation(
        "FailedCreatePodSandBox",
        "Pending, Retrying",
        "the node cannot prepare the pod, usually because of its network plugin or container runtime",
        "nothing; if it lasts, have an administrator check the node's network plugin and container runtime",
    ),
    Explanation(
        (
            "QuotaExceeded, ServiceAccountMissing, PodSecurityViolation, AdmissionDenied, FailedCreateHeadPod, "
            "FailedCreateWorkerPod, FailedCreate"
        ),
        "Pending, Starting, Retrying",
        (
            "the API server refuses to create the pods, or an object that KubeRay creates before them "
            "(RayCluster, Services, the submitter's Job): a quota, an admission policy or webhook, or a missing "
            "permission of KubeRay"
        ),
        "fix what `message` names; KubeRay and the Job controller try again, after up to a quarter of an hour",
    ),
    Explanation(
        (
            "FailedToCreateRayCluster, FailedToCreateService, FailedToUpdateService, "
            "FailedToCreateRayJobSubmitter, InvalidRayClusterSpec"
        ),
        "Pending, Starting, Retrying",
        "KubeRay cannot create the object for another reason",
        "fix what `message` names; KubeRay and the Job controller try again, after up to a quarter of an hour",
    ),
    Explanation(
        "PodsNotCreated",
        "Pending, Retrying",
        (
            "KubeRay has created no pod within 30 seconds, and no Event that says why. It creates no Event if it "
            "cannot create the Secret with the cluster's token"
        ),
        "see the log of KubeRay's operator, and check quotas and policies for Secrets",
    ),
    Explanation(
        "NoStorage",
        "Pending",
        "the TrainJob names no storage, and the operator's settings have no default for its namespace",
        (
            "create it again with `spec.storage`, or have the chart's `settings.defaults.storage` set; the "
            "TrainJob then starts by itself"
        ),
    ),
    Explanation(
        "UnknownNodePool",
        "Pending",
        "the operator's settings have no pool with that name",
        "name a pool that `message` lists, or ask an administrator to add it",
    ),
    Explanation(
        "NotAllowed",
        "Pending",
        (
            "the TrainJob asks for [fields that are not allowed](operator.md#what-a-trainjob-may-not-ask-for); "
            "`message` lists them"
        ),
        "remove them in a new TrainJob, or ask an administrator to allow them in the operator's settings",
    ),
    Explanation(
        "NameTaken",
        "Pending",
        "a RayJob of that name belongs to somebody else",
        "delete the RayJob, or choose another name",
    ),
    Explanation(
        "SpecTooLarge",
        "Pending",
        "the spec is too large for an annotation, or `pods` is too large, which each pod repeats",
        "shorten `function.config` or `pods`",
    ),
    Explanation(
        "RayJobRefused",
        "Pending",
        (
            "the API server or an admission webhook refuses the RayJob, KubeRay's CRD is missing, or the operator "
            "lacks a permission"
        ),
        "fix what `message` names; the operator tries again every 15 seconds",
    ),
    Explanation(
        "RayJobChanged",
        "any, of Accepted only",
        (
            "an admission policy or webhook changes the RayJob when the operator writes it; `message` names the "
            "first changed field. The job runs with the change"
        ),
        "have the policy leave RayJobs of TrainJobs alone; the operator tries again every 15 seconds",
    ),
    Explanation(
        "NetworkPolicyRefused",
        "Pending",
        (
            "the job's NetworkPolicy could not be created: the operator lacks the permission, or an admission "
            "policy or webhook refuses or changes it. Without it no pod is created"
        ),
        "fix what `message` names; the operator tries again every 15 seconds",
    ),
    Explanation(
        "Deleting",
        "Pending",
        (
            "the TrainJob is being deleted, and finalizers delay it. While a RayJob still runs, this is only the "
            "reason of Accepted"
        ),
        "see `metadata.finalizers`",
    ),
    Explanation(
        "ConfigChanged",
        "any, of Accepted only",
        ("`function.config` was changed after the job got its RayJob, which keeps the old one, also in later attempts"),
        "restore the old value, or apply the TrainJob under a new name",
    ),
    Explanation(
        "QueueChanged",
        "any, of Accepted only",
        (
            "the label `kueue.x-k8s.io/queue-name` was added, changed or removed while the RayJob runs, which "
            "Kueue refuses; the job stays in its queue, or runs on without one"
        ),
        (
            "undo the change, or suspend the job: the RayJob changes its queue once it is suspended, and enters "
            "one once it is resumed"
        ),
    ),
    Explanation(
        "InvalidSpec",
        "Pending",
        ("a CRD of another version admitted this spec. If there is a RayJob, this is only the reason of Accepted"),
        "create the TrainJob again",
    ),
    Explanation(
        "Suspended",
        "Suspended",
        "`spec.suspend` is true",
        "set `spec.suspend: false`",
    ),
    Explanation(
        "Queued",
        "Suspended",
        "the queue has no room (`message` quotes Kueue), or Kueue has created no Workload for the job",
        "wait for the queue, or check that Kueue is installed and runs with the integration `ray.io/rayjob`",
    ),
    Explanation(
        "Cancelled",
        "Failed",
        "`spec.cancel` is true: the job's pods have ended, after a last checkpoint if it was training",
        "nothing; to train after all, apply the TrainJob under a new name and without `cancel`",
    ),
    Explanation(
        "TrainingFailed",
        "Failed",
        "a worker or the driver raised an error; `message` says which, and quotes it",
        "fix the error, and apply the TrainJob under a new name",
    ),
    Explanation(
        "DeadlineExceeded",
        "Failed",
        (
            "`spec.deadlines.total` has passed; the pods are deleted, and the checkpoints are kept. Time in a queue "
            "does not count. `message` and `waiting` still say why the job was waiting"
        ),
        "allow more time in a new TrainJob",
    ),
    Explanation(
        "PreRunningDeadlineExceeded",
        "Retrying, Failed",
        (
            "the driver had not started within `spec.deadlines.start`; `message` and `waiting` still say why the job "
            "was waiting"
        ),
        "remove the cause, and apply the TrainJob under a new name",
    ),
    Explanation(
        "SubmissionFailed",
        "Retrying, Failed",
        "the entry point could not be submitted to Ray; `message` has the last line of the submitter pod's log",
        "fix the cause that it names, for example an image with no trainjob, or one older than the operator's",
    ),
    Explanation(
        "AppFailed",
        "Retrying, Failed",
        (
            "training ended with an error and left no report; `message` has the end of its log, and says so if "
            "the driver was killed, usually because it ran out of memory"
        ),
        "give the head more memory (`spec.head.memory`), or see the submitter pod's log",
    ),
    Explanation(
        "ValidationFailed",
        "Failed",
        "KubeRay refuses the RayJob, because somebody has changed it; it is deleted with its pods",
        "apply the TrainJob under a new name",
    ),
    Explanation(
        "Stopped",
        "Failed",
        "someone stopped the Ray job",
        "apply it again",
    ),
    Explanation(
        "JobStatusCheckTimeoutExceeded",
        "Retrying, Failed",
        (
            "KubeRay (1.7 or newer) could not reach the head's dashboard for five minutes, for example because the "
            "head's node is lost. KubeRay does not retry this; if `retries` allows, the operator replaces the RayJob, "
            "and training continues from the latest checkpoint"
        ),
        (
            "see the head pod and the network policies; `RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS` in the environment of "
            "KubeRay's operator allows more time"
        ),
    ),
    Explanation(
        "JobDeploymentStatusTransitionGracePeriodExceeded",
        "Failed",
        "KubeRay could not reach the head's dashboard",
        "see the head pod and the network policies",
    ),
]

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@cache
def explanation(reason: str) -> Explanation | None:
    """The explanation of a reason, without Markdown."""
    for found in EXPLANATIONS:
        if reason in found.reasons.split(", "):
            return Explanation(*(_LINK.sub(r"\1", text).replace("`", "") for text in found))
    return None


def table() -> str:
    """The table of docs/status.md."""
    head = "| reason | with phase | means | do |\n|---|---|---|---|\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in EXPLANATIONS)
