"""Whether the user may run the commands, and the operator may do its work."""

from collections.abc import Iterator
from typing import Any

from trainjob.api.resources import Resource
from trainjob.cluster.errors import NotPermitted
from trainjob.doctor.findings import Finding, ok, unknown, wrong
from trainjob.doctor.installation import Subject

Permission = tuple[str, str, tuple[str, ...]]
"""API group, resource and verbs."""

USER: list[Permission] = [
    ("trainjob.dev", "trainjobs", ("get", "list", "watch", "create", "patch", "delete")),
    ("", "pods", ("get", "list")),
    ("", "pods/log", ("get",)),
    ("", "events", ("list",)),
    ("", "pods/portforward", ("get", "create")),
    ("", "secrets", ("get",)),
    ("batch", "jobs", ("create", "delete")),
    ("ray.io", "rayjobs", ("get",)),
]
"""The permissions that the commands need. `trainjob dashboard` forwards ports and reads a Secret; reading a run on a
volume forwards ports, starts a pod by a Job, and reads the pod's image from the RayJob."""

OPERATOR: list[Permission] = [
    ("trainjob.dev", "trainjobs", ("get", "list", "watch", "delete")),
    ("trainjob.dev", "trainjobs/status", ("patch",)),
    ("trainjob.dev", "trainjobs/finalizers", ("update",)),
    ("ray.io", "rayjobs", ("get", "list", "watch", "create", "patch", "delete")),
    ("networking.k8s.io", "networkpolicies", ("get", "create", "patch")),
    ("", "pods", ("list", "watch")),
    ("", "events", ("list", "create")),
    ("kueue.x-k8s.io", "workloads", ("list", "patch")),
]
"""The rules of the chart's role, without those that depend on its values."""

_REVIEWS = "/apis/authorization.k8s.io/v1"


def permissions(subject: Subject) -> Iterator[Finding]:
    name = "permissions"
    missing = _missing(subject, USER, None)
    if not missing:
        yield ok(name, f"you may run all commands in the namespace {subject.namespace}")
        return
    yield wrong(
        name,
        f"you may not {'; '.join(missing)} in the namespace {subject.namespace}",
        "ask its administrator: kubectl create rolebinding trainjob-users --clusterrole=edit --user=USER "
        f"-n {subject.namespace}",
    )


def operator_permissions(subject: Subject) -> Iterator[Finding]:
    name, installation = "operator's permissions", subject.installation
    if installation.deployment is None:
        return
    try:
        missing = _missing(subject, OPERATOR, installation.account)
    except NotPermitted as error:
        yield unknown(name, str(error))
        return
    if missing:
        upgrade = f"helm upgrade RELEASE CHART -n {installation.namespace} --reuse-values"
        yield wrong(name, f"the operator may not {'; '.join(missing)} in {subject.namespace}", upgrade)
    else:
        yield ok(name, f"the operator may do its work in the namespace {subject.namespace}")


def _missing(subject: Subject, rules: list[Permission], user: str | None) -> list[str]:
    """The verbs that `user`, by default the current one, lacks, by resource."""
    found: list[str] = []
    for group, resource, verbs in rules:
        lacking = [verb for verb in verbs if not _may(subject, group, resource, verb, user)]
        if lacking:
            found.append(f"{', '.join(lacking)} {resource}{f'.{group}' if group else ''}")
    return found


def _may(subject: Subject, group: str, resource: str, verb: str, user: str | None) -> bool:
    plural, _, subresource = resource.partition("/")
    attributes = {"namespace": subject.namespace, "verb": verb, "group": group, "resource": plural}
    spec: dict[str, Any] = {"resourceAttributes": attributes | {"subresource": subresource}}
    kind = "SelfSubjectAccessReview"
    if user is not None:
        kind, spec["user"] = "SubjectAccessReview", user
        spec["groups"] = [
            "system:serviceaccounts",
            f"system:serviceaccounts:{user.split(':')[2]}",
            "system:authenticated",
        ]
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    answer = subject.connection.request("POST", Resource(_REVIEWS, f"{kind.lower()}s"), None, body=review)
    return bool(answer["status"]["allowed"])
