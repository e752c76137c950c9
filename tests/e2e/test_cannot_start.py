"""Jobs that cannot start: the status says why."""

import pytest

from e2e.train_jobs import TrainJobs

MISSING = "there-is-none"


@pytest.mark.core
def test_what_pods_wait_for_is_named_until_the_start_deadline(jobs: TrainJobs) -> None:
    small = {"count": 1, "memory": "256Mi"}
    jobs.submit("image", pods={"image": f"localhost:5000/{MISSING}:1"}, workers=small, retries=0)
    gpus = {"count": 8, "perPod": 8, "gpus": 1}
    jobs.submit("secret", storage=jobs.storage() | {"secretName": MISSING}, workers=gpus)
    jobs.submit("crash", pods={"image": _image_without_ray(jobs)}, workers=small)
    for name, reasons, message in (
        ("image", ("ErrImagePull", "ImagePullBackOff"), MISSING),
        ("secret", ("CreateContainerConfigError",), f'secret "{MISSING}" not found'),  # of the head's pod
        ("secret", ("Unschedulable",), "Insufficient nvidia.com/gpu"),  # of the workers' pod
        ("crash", ("CrashLoopBackOff",), "ray: command not found"),
    ):
        waiting = jobs.until_waiting(name, *reasons)
        assert any(each["reason"] in reasons and message in each["message"] for each in waiting), waiting
        assert jobs.status(name)["phase"] == "Pending"
    jobs.patch("trainjob", "image", {"spec": {"deadlines": {"start": "1s"}}})
    assert jobs.until_phase("Failed", "image")["reason"] == "PreRunningDeadlineExceeded"
    jobs.until_gone("image")


def _image_without_ray(jobs: TrainJobs) -> str:
    """The operator's."""
    image = "--output=jsonpath={.items[0].spec.template.spec.containers[0].image}"
    return jobs.cluster.kubectl("get", "deployments", "--namespace=trainjob-system", image)
