"""Jobs that end badly or cannot start: the status says why."""

from train_jobs import TrainJobs

RAISES = """
    from ray import train

    def train_loop(config):
        for step in range(1, 10):
            if step == 5 and train.get_context().get_world_rank() == 1:
                raise ArithmeticError("step 5 does not add up")
            train.report({"step": step})
"""

HOARDS = """
    from ray import train

    def train_loop(config):
        hoard = []
        while train.get_context().get_world_rank() == 0:
            hoard.append(bytearray(b"x" * 2**26))
"""

# Stands for a driver whose data are too many for it: Python loads a module of this name at its start.
DRIVER_HOARDS = """
    import sys

    hoard = []
    while sys.orig_argv[1:4] == ["-m", "trainjob", "run"]:
        hoard.append(bytearray(b"x" * 2**26))
"""


def test_what_a_worker_raises_is_told_with_its_rank(jobs: TrainJobs) -> None:
    jobs.submit_function(RAISES, retries=1)
    status = jobs.until_phase("Failed")
    failure = status["training"]["failure"]
    assert (failure["rank"], failure["exception"]) == (1, "ArithmeticError")
    assert failure["message"] == "step 5 does not add up"
    assert 'raise ArithmeticError("step 5 does not add up")' in failure["traceback"]
    assert status["reason"] == "TrainingFailed"
    assert status["message"] == "worker 1 failed: ArithmeticError: step 5 does not add up"
    assert status["attempt"] == 1  # Ray Train used the one retry up on the same pods
    jobs.kubectl("wait", "--for=condition=Failed", "trainjob/job", "--timeout=30s")
    jobs.until_gone()


def test_a_worker_that_runs_out_of_memory_is_said_to(jobs: TrainJobs) -> None:
    jobs.submit_function(HOARDS, retries=0, workers={"count": 1, "memory": "2Gi"})
    status = jobs.until_phase("Failed")
    assert "memory" in status["message"].lower()


def test_a_driver_that_runs_out_of_memory_is_said_to(jobs: TrainJobs) -> None:
    jobs.submit_function(DRIVER_HOARDS, file="sitecustomize.py", retries=1, workers={"count": 1})
    jobs.until_true(lambda status: status.get("phase") == "Retrying" and "memory" in status["message"], "Retrying")
    assert "memory" in jobs.until_phase("Failed")["message"]


def test_what_pods_wait_for_is_named(jobs: TrainJobs) -> None:
    troubles = jobs.troubles()
    for name, trouble in troubles.items():
        jobs.submit(name, **trouble.spec)
    for name, trouble in troubles.items():
        waiting = jobs.until_waiting(name, *trouble.reasons)
        assert any(trouble.words in each["message"] for each in waiting)
        assert jobs.status(name)["phase"] == "Pending"


def test_what_a_crashing_container_said_last_is_told(jobs: TrainJobs) -> None:
    image = "--output=jsonpath={.items[0].spec.template.spec.containers[0].image}"
    without_ray = jobs.cluster.kubectl("get", "deployments", "--namespace=trainjob-system", image)
    jobs.submit(pods={"image": without_ray})
    waiting = jobs.until_waiting("job", "CrashLoopBackOff")
    assert any("ray: command not found" in each["message"] for each in waiting)


def test_the_start_deadline_ends_a_job_that_cannot_start(jobs: TrainJobs) -> None:
    jobs.submit(pods={"image": "localhost:5000/there-is-none:1"}, deadlines={"start": "15s"}, retries=0)
    status = jobs.until_phase("Failed")
    assert status["reason"] == "PreRunningDeadlineExceeded"
    jobs.until_gone()
