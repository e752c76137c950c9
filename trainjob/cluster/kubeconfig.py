"""Finds a cluster as kubectl does."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import yaml
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from urllib3 import Retry

from trainjob.api.names import ACCOUNT
from trainjob.cluster.connection import Connection
from trainjob.cluster.errors import NoCluster


def connect(context: str | None = None, namespace: str | None = None) -> Connection:
    """Connects as kubectl does: to the `context` of the kubeconfig that $KUBECONFIG names, or of ~/.kube/config.
    Without one, in a pod, it connects to the pod's cluster. The namespace is the context's or the pod's, or else
    `default`.

    Raises NoCluster, or ClusterError for a namespace that cannot exist.
    """
    files = os.environ.get("KUBECONFIG") or "~/.kube/config"
    configuration = Configuration()
    configuration.retries = Retry(2, read=0, backoff_factor=0.2)  # of a connection; a request is sent once
    try:
        if not any(os.path.exists(os.path.expanduser(file)) for file in files.split(os.pathsep) if file):
            return _in_cluster(configuration, files, namespace)
        known, current = _contexts(files)
        if not known:
            raise config.ConfigException("it has no contexts")
        chosen = context or current
        if chosen not in known:
            missing = f"context {chosen}" if chosen else "current context, so choose one with --context"
            raise NoCluster(f"{files} has no {missing}: it has {', '.join(sorted(known))}")
        with _failures_raised():
            config.load_kube_config(files, chosen, configuration)
    except (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise NoCluster(f"the kubeconfig {files} cannot be used: {reason}; `kubectl config view` shows it") from None
    return Connection(ApiClient(configuration), namespace or known[chosen].get("namespace") or "default")


def _contexts(files: str) -> tuple[dict[str, dict[str, Any]], str]:
    """The contexts of kubeconfig files by name, and the name of the current one, empty if there is none. As for
    kubectl, the first file that has something counts; the library would take the last current context."""
    known: dict[str, dict[str, Any]] = {}
    current = ""
    for file in filter(os.path.exists, map(os.path.expanduser, filter(None, files.split(os.pathsep)))):
        with open(file) as opened:
            content = yaml.safe_load(opened)
        if not isinstance(content, dict):
            raise config.ConfigException(f"{file} is not a mapping")
        current = current or content.get("current-context") or ""
        for each in content.get("contexts") or ():
            known.setdefault(each["name"], each.get("context") or {})
    return known, current


def _in_cluster(configuration: Configuration, files: str, namespace: str | None) -> Connection:
    try:
        config.load_incluster_config(configuration)
    except config.ConfigException:
        raise NoCluster(f"there is no kubeconfig at {files}: set KUBECONFIG to the file of your cluster") from None
    namespace_file = ACCOUNT / "namespace"
    default = namespace_file.read_text().strip() if namespace_file.exists() else "default"
    return Connection(ApiClient(configuration), namespace or default)


@contextmanager
def _failures_raised() -> Generator[None]:
    """Raises ConfigException if a credential plugin has failed: the library only logs the error and continues without
    credentials."""

    def fail(record: logging.LogRecord) -> bool:
        if record.module == "kube_config":
            raise config.ConfigException(record.getMessage())
        return True

    root = logging.getLogger()
    root.addFilter(fail)
    try:
        yield
    finally:
        root.removeFilter(fail)
