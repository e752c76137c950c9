"""The Secrets that a job names: whether the namespace has them."""

from collections.abc import Iterator
from typing import NamedTuple

from trainjob.api.notify import Receiver
from trainjob.api.resources import SECRETS
from trainjob.cluster.connection import NotFound
from trainjob.doctor.findings import Finding, ok, wrong
from trainjob.doctor.installation import Subject
from trainjob.errors import listed
from trainjob_operator.receivers import receivers_of, refused_receivers


class _Named(NamedTuple):
    field: str
    name: str
    keys: tuple[str, ...] = ()
    """The keys that the Secret must have."""


def secrets(subject: Subject) -> Iterator[Finding]:
    check, namespace, problems = "Secrets", subject.namespace, 0
    settings = subject.installation.settings
    for refusal in refused_receivers(subject.job, settings.notify) if settings is not None else ():
        problems += 1
        upgrade = f"helm upgrade RELEASE CHART -n {subject.installation.namespace} --reuse-values --set"
        yield wrong(check, refusal, f"{upgrade} 'settings.notify.secretNames={{NAME}}'")
    named = list(_named(subject))
    for field, name, keys in named:
        create = f"kubectl create secret generic {name} -n {namespace}"
        create += "".join(f" --from-literal={key}=VALUE" for key in keys or ("KEY",))
        try:
            data = subject.connection.request("GET", SECRETS, namespace, name).get("data") or {}
        except NotFound:
            problems += 1
            yield wrong(check, f"{field} names {name}, which is not in the namespace {namespace}", create)
            continue
        if lacking := [key for key in keys if not data.get(key)]:
            problems += 1
            remedy = f"kubectl delete secret {name} -n {namespace} && {create}"
            yield wrong(check, f"{name}, which {field} names, has no {listed(lacking)}", remedy)
    if named and not problems:
        yield ok(check, f"{listed(sorted({each.name for each in named}))}, which the job names, exist")


def _named(subject: Subject) -> Iterator[_Named]:
    spec, settings = subject.job.spec, subject.installation.settings
    if spec.storage is not None and spec.storage.secret_name is not None:
        yield _Named("spec.storage", spec.storage.secret_name)
    if spec.code is not None and spec.code.git is not None and spec.code.git.secret_name is not None:
        yield _Named("spec.code.git", spec.code.git.secret_name, ("username", "password"))
    if spec.baselines is not None and (model := spec.baselines.language_model) is not None and model.secret_name:
        yield _Named("spec.baselines.languageModel", model.secret_name, ("OPENAI_API_KEY",))
    for number, tracker in enumerate(spec.tracking):
        if (name := tracker.secret[0]) is not None:
            yield _Named(f"spec.tracking[{number}]", name)
    receivers = (
        spec.notify if spec.notify is not None or settings is None else receivers_of(subject.job, settings.notify)
    )
    where = "spec.notify" if spec.notify is not None else "notify.receivers of the operator's settings"
    for number, receiver in enumerate(receivers or ()):
        yield _Named(f"{where}[{number}]", receiver.secret_name, _keys(receiver))


def _keys(receiver: Receiver) -> tuple[str, ...]:
    if receiver.apprise is not None:
        return (receiver.apprise.key,)
    return ("key",) if receiver.webhook is None or receiver.webhook.url is not None else ("key", "url")
