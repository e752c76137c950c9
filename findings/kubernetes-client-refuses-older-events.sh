#!/usr/bin/env bash
# Kubernetes' Python client cannot list events of events.k8s.io/v1 that were recorded by the core API.
#
# Seen with: kubernetes 37.0.2, CPython 3.11.
#
# Events have two APIs over the same objects. Most components record by the core one, which leaves eventTime empty, and
# the API server then answers "eventTime": null in either API. The client's EventsV1Event wants a date there, and one
# such event fails the whole list. CoreV1Event takes the same object.
#
# Output seen:
#   events.k8s.io/v1, EventsV1Event: eventTime: Input should be a valid datetime
#   v1, CoreV1Event: 1 event, "0/3 nodes are available"
#
# Fails if either line differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check kubernetes==37.0.2

cat > list.py <<'PYTHON'
import json

from kubernetes import client
from pydantic import ValidationError

META = {"name": "trainer.1", "namespace": "team", "creationTimestamp": "2026-11-02T10:00:00Z"}
POD = {"kind": "Pod", "name": "trainer", "namespace": "team"}
NOTE = "0/3 nodes are available"
EVENT = {"metadata": META, "eventTime": None, "type": "Warning", "reason": "FailedScheduling"}
new = {"apiVersion": "events.k8s.io/v1", "kind": "EventList", "items": [EVENT | {"regarding": POD, "note": NOTE}]}
core = {"apiVersion": "v1", "kind": "EventList", "items": [EVENT | {"involvedObject": POD, "message": NOTE}]}


def read(answer, kind):
    return client.ApiClient().deserialize(json.dumps(answer), kind, "application/json").items


try:
    print("events.k8s.io/v1, EventsV1Event:", len(read(new, "EventsV1EventList")), "event")
except ValidationError as error:
    [found] = error.errors()
    print(f"events.k8s.io/v1, EventsV1Event: {found['loc'][-1]}: {found['msg']}")
items = read(core, "CoreV1EventList")
print(f'v1, CoreV1Event: {len(items)} event, "{items[0].message}"')
PYTHON

venv/bin/python list.py | tee found
diff seen found
