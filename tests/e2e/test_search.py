"""A RayService of a search's best model, as `trainjob serve --manifest` writes it, answers curl."""

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import yaml

from cluster.component import free_ports
from cluster.jobs import eventually
from e2e.train_jobs import LONG, Status, TrainJobs
from servers.programs import program

NAME = "job"


def trainer_image(jobs: TrainJobs) -> str:
    """The image that trained."""
    return jobs.ray_job(NAME)["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"]


@contextmanager
def forwarded(jobs: TrainJobs, service: str, target: int = 8000) -> Generator[str]:
    """The address here of a service's port, in the block."""
    (port,) = free_ports(1)
    own = ["--kubeconfig", jobs.cluster.kubeconfig, "--namespace", jobs.namespace]
    command = [program("kubectl"), *own, "port-forward", f"service/{service}", f"{port}:{target}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout is not None
            assert "Forwarding" in forward.stdout.readline()
            yield f"http://127.0.0.1:{port}"
        finally:
            forward.kill()


def tuning_of(status: Status) -> dict[str, Any]:
    return status.get("training", {}).get("tuning") or {}


def curl(*arguments: str) -> str:
    done = subprocess.run(["curl", "--silent", "--show-error", *arguments], capture_output=True, text=True, timeout=60)
    return done.stdout


def test_a_rayservice_of_the_best_trials_model_answers(jobs: TrainJobs) -> None:
    """Runs four trials, two at a time. One loses a worker pod and continues."""
    parameters = {
        "training.optimizer.adamW.learningRate": {"grid": [1.0e-3, 2.0e-3]},
        "model.textClassifier.encoder.layers": {"grid": [1, 2]},
    }
    jobs.submit(
        NAME,
        workers={"count": 1},
        training={"epochs": 3, "batchSize": 16, "precision": "float32"},
        tuning={"parameters": parameters, "search": "grid", "parallel": 2},
        retries=2,
    )
    jobs.until_true(lambda status: tuning_of(status).get("done", 0) >= 1, "the end of a trial", NAME)
    jobs.kill(jobs.pods("worker", NAME)[0])
    searched = tuning_of(jobs.until_phase("Succeeded", NAME))
    assert (searched["total"], searched["done"], searched["failed"]) == (4, 4, 0)
    assert set(searched["best"]["parameters"]) == set(parameters)
    run, image = f"s3://{jobs.run(NAME)}", trainer_image(jobs)
    written = jobs.store.trainjob("serve", run, "--manifest", "--set", f"spec.pods.image={image}")
    assert written.returncode == 0, written.stderr
    jobs.until_gone(NAME)
    jobs.kubectl("apply", "--server-side", "--filename=-", stdin=written.stdout)
    _, service = yaml.safe_load_all(written.stdout)
    name = service["metadata"]["name"]

    def is_ready() -> bool:
        found = json.loads(jobs.kubectl("get", "rayservice", name, "--output=json"))
        conditions = found.get("status", {}).get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    eventually(is_ready, LONG, lambda: jobs.kubectl("get", "rayservice,pods,events", "--output=wide"))
    body = json.dumps({"rows": [{"title": "red1 red2", "body": "red3 red4"}, {"title": "blue1", "body": "blue2"}]})
    json_type = "Content-Type: application/json"
    with forwarded(jobs, f"{name}-serve-svc") as address:
        answer = json.loads(curl(f"{address}/predict", "--header", json_type, "--data", body))
        assert len(answer["predictions"]) == 2
        assert sorted(answer["predictions"][0]["probabilities"]) == ["blue", "green", "grey", "red"]
        predicted = jobs.store.trainjob("predict", run, "--text", "red1 red2 red3 red4")
        assert answer["predictions"][0]["prediction"] in predicted.stdout.splitlines()[4]
        assert json.loads(curl(f"{address}/healthz"))["kind"] == "text"
        assert "trainjob_serving_requests_total" in curl(f"{address}/metrics")
        assert "detail" in json.loads(curl(f"{address}/predict", "--header", json_type, "--data", "{}"))
    with forwarded(jobs, f"{name}-head-svc", 8265) as address:
        order = curl(f"{address}/api/jobs/", "--header", json_type, "--data", '{"entrypoint": "env"}')
        assert order == "Unauthorized: Missing authentication token"
