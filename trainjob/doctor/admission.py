"""Checks admission: whether something would reject a job's pods, or its reports."""

from collections.abc import Iterator

from trainjob.api.resources import PODS, Resource
from trainjob.api.status_reasons import explanation
from trainjob.cluster.connection import NotFound
from trainjob.cluster.errors import ClusterUnreachable, NotPermitted, Refused
from trainjob.doctor.findings import Finding, ok, unknown, wrong
from trainjob.doctor.installation import Subject
from trainjob.doctor.probe import probe_pod
from trainjob_operator.diagnosis import diagnose

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def pods_admitted(subject: Subject) -> Iterator[Finding]:
    """Submits a pod of the job as a dry run: the API server checks it without creating it."""
    name = "admission"
    try:
        subject.connection.request(
            "POST", PODS, subject.namespace, body=probe_pod(subject, ""), query={"dryRun": "All"}
        )
    except ClusterUnreachable:
        raise
    except NotPermitted as error:
        yield unknown(name, str(error))
    except (Refused, NotFound) as error:
        [found] = diagnose([], None, [], [("FailedCreate", str(error))])
        known = explanation(found.reason)
        yield wrong(name, f"{found.reason}: {error}", known.remedy if known is not None else "")
    else:
        yield ok(name, "policies, webhooks and quotas accept a pod")


def progress_policy(subject: Subject) -> Iterator[Finding]:
    """The policy that restricts which pods may report a job's progress."""
    check, found = "progress policy", subject.installation
    if found.deployment is None:
        return
    if found.policy is None:
        yield unknown(check, "not installed, so status.training stays empty", "set progress.enabled of the chart")
        return
    try:
        for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
            subject.connection.request("GET", Resource(_ADMISSION, kind), None, found.policy)
    except NotPermitted as error:
        yield unknown(check, str(error))
    except NotFound as error:
        restore = f"restore it: helm upgrade RELEASE CHART -n {found.namespace} --reuse-values"
        yield wrong(check, f"the operator waits for it: {error}", restore)
    else:
        yield ok(check, f"{found.policy} is in place")
