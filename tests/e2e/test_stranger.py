"""A stranger's pod beside a job's: it gets nothing of Ray, and the job goes on, also with another head."""

import json
from typing import Any

from e2e.train_jobs import LONG, TrainJobs, resumed_from, until_step

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
"""By the token; or, where the cluster's network enforces NetworkPolicies, before that. That of `make kind` does so with
Docker; with Podman it is a plain bridge, which does not."""


def test_a_stranger_is_refused_and_the_job_outlives_its_head(jobs: TrainJobs) -> None:
    jobs.submit(**jobs.texts(epochs=6), retries=1)
    until_step(jobs, 15)
    (head,) = jobs.pods("head")
    assert jobs.kubectl("exec", head, "--", "python", "-c", INTRUDE, _address(jobs, head)).strip() == "401"  # it serves
    assert intruded(jobs, _address(jobs, head), "stranger") in REFUSED
    jobs.kill(head)
    jobs.until_true(resumed_from, "training again")
    (other,) = jobs.pods("head")
    assert other != head
    assert intruded(jobs, _address(jobs, other), "second-stranger") in REFUSED
    status = jobs.until_phase("Succeeded")
    assert status["training"]["stage"] == "Finished"
    assert status["attempt"] == 1


def intruded(jobs: TrainJobs, address: str, name: str) -> str:
    """What a pod of this name in the job's namespace gets from Ray at an address."""
    image = jobs.ray_job()["spec"]["submitterPodTemplate"]["spec"]["containers"][0]["image"]
    jobs.kubectl("apply", "--filename=-", stdin=json.dumps(_stranger(name, image, address)))
    jobs.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", f"--timeout={LONG}s")
    return jobs.kubectl("logs", name).strip()


def _address(jobs: TrainJobs, pod: str) -> str:
    return jobs.kubectl("get", "pod", pod, "--output=jsonpath={.status.podIP}")


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
