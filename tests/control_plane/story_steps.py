"""Steps, and parts of them, that several stories have."""

from story import created, kuberay, step

END = "2026-01-02T03:04:05Z"

# What KubeRay reports
STARTING = kuberay(jobDeploymentStatus="Initializing", jobStatus="", reason="", rayClusterName="first")
RUNNING = kuberay(jobDeploymentStatus="Running", jobStatus="RUNNING", reason="", rayClusterName="first")
RUNNING_AGAIN = kuberay(jobDeploymentStatus="Running", jobStatus="RUNNING", reason="", rayClusterName="second")
RETRYING = kuberay(jobDeploymentStatus="Retrying", jobStatus="FAILED", reason="AppFailed", failed=1)
COMPLETE = kuberay(jobDeploymentStatus="Complete", jobStatus="SUCCEEDED", endTime=END)
FAILED = kuberay(jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", failed=1, endTime=END)

# What the status says
CREATED = {"phase": "Pending", "reason": "Created"}
TRAINS = {"phase": "Running", "reason": "Training"}
HAS_SUCCEEDED = {"phase": "Succeeded", "reason": "Succeeded"}
IS_SUSPENDED = {"phase": "Suspended", "reason": "Suspended"}
GONE = {"phase": None}


def pending(reason: str) -> dict[str, str]:
    return {"phase": "Pending", "reason": reason}


def retries(reason: str, attempt: int = 2) -> dict[str, str | int]:
    return {"phase": "Retrying", "reason": reason, "attempt": attempt}


def has_failed(reason: str, attempt: int = 1) -> dict[str, str | int]:
    return {"phase": "Failed", "reason": reason, "attempt": attempt}


AT_FIRST = step(created(), then=CREATED, says="Created")
TRAINING = step(RUNNING, then=TRAINS, says="Started")
SUCCESS = step(COMPLETE, then=HAS_SUCCEEDED, says="Succeeded")
