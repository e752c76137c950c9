"""A stranger's pod beside a job's, which tries to have Ray run a command."""

import json
from typing import Any

from e2e.train_jobs import LONG, TrainJobs

# Prints what an attempt to have Ray run a command comes to.
INTRUDE = """
import sys, urllib.error, urllib.request
request = urllib.request.Request(
    f"http://{sys.argv[1]}:8265/api/jobs/", b'{"entrypoint": "env"}', {"Content-Type": "application/json"}
)
try:
    print(urllib.request.urlopen(request, timeout=20).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError:
    print("unreachable")
"""

REFUSED = ("401", "unreachable")
"""Refused by the token or, where the network enforces NetworkPolicies, earlier. The cluster of `make kind` enforces
them with Docker, but not with Podman, whose network is a plain bridge."""


def intruded_head(jobs: TrainJobs, job: str, name: str) -> tuple[str, str]:
    """Ray's responses without a token to the head of the job's Ray cluster, and to a pod of this name."""
    (head,) = jobs.pods("head", job)
    address = jobs.kubectl("get", "pod", head, "--output=jsonpath={.status.podIP}")
    within = jobs.kubectl("exec", head, "--", "python", "-c", INTRUDE, address).strip()
    image = jobs.ray_job(job)["spec"]["submitterPodTemplate"]["spec"]["containers"][0]["image"]
    jobs.kubectl("apply", "--filename=-", stdin=json.dumps(_stranger(name, image, address)))
    jobs.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", f"--timeout={LONG}s")
    return within, jobs.kubectl("logs", name).strip()


def _stranger(name: str, image: str, address: str) -> dict[str, Any]:
    container = {
        "name": "stranger",
        "image": image,
        "command": ["python", "-c", INTRUDE, address],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    own = {"restartPolicy": "Never", "automountServiceAccountToken": False, "securityContext": security}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**own, "containers": [container]}}
