#!/usr/bin/env bash
# Kubernetes' Python client and lightkube delete what is newer than they are when they read an object and write it back.
#
# Seen with: kubernetes 37.0.2, lightkube 1.0.1, lightkube-models 1.37.0.8, CPython 3.11.
#
# Both turn an object into classes of one version of the API, and drop fields that these do not know, without a word.
# Reading, changing one field and replacing is how an operator updates; the cluster, which is newer, then finds the
# other fields gone. resourceVersion guards against changes by others, not against this. A patch, and the dicts of
# lightkube's generic resources, keep them. As typed objects also leave out what is None, a patch made of one cannot
# remove a field.
#
# Output seen:
#   read: ['containers', 'newPolicy', 'nodeName']; container: ['image', 'name', 'newLimit']
#   written by kubernetes: ['containers', 'nodeName']; container: ['image', 'name']
#   written by lightkube: ['containers', 'nodeName']; container: ['image', 'name']
#   lightkube, generic: ['containers', 'newPolicy', 'nodeName']; container: ['image', 'name', 'newLimit']
#   node_name = None, patch by kubernetes: {'containers': []}
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  kubernetes==37.0.2 lightkube==1.0.1 lightkube-models==1.37.0.8

cat > fields.py <<'PYTHON'
import json

from kubernetes import client
from lightkube.codecs import from_dict
from lightkube.generic_resource import create_namespaced_resource

SPEC = {
    "containers": [{"name": "main", "image": "train", "newLimit": 1}],
    "newPolicy": {"mode": "fast"},
    "nodeName": "a",
}


def pod(version: str, kind: str) -> dict:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "job"}, "spec": SPEC}


def shown(what: str, written: dict) -> None:
    spec = written["spec"]
    print(f"{what}: {sorted(spec)}; container: {sorted(spec['containers'][0])}")


shown("read", pod("v1", "Pod"))
api = client.ApiClient()
read = api.deserialize(json.dumps(pod("v1", "Pod")), "V1Pod", "application/json")
shown("written by kubernetes", api.sanitize_for_serialization(read))
shown("written by lightkube", from_dict(pod("v1", "Pod")).to_dict())
create_namespaced_resource("example.com", "v1", "Job", "jobs")
shown("lightkube, generic", from_dict(pod("example.com/v1", "Job")).to_dict())
patch = api.sanitize_for_serialization(client.V1PodSpec(containers=[], node_name=None))
print(f"node_name = None, patch by kubernetes: {patch}")
PYTHON

venv/bin/python fields.py | tee found
diff seen found
