"""Jobs that end well, followed from their first phase to what they leave behind."""

import json

from train_jobs import BUCKET, LONG, Status, TrainJobs

from cluster.jobs import eventually


def test_a_text_classifier_tells_its_progress_and_leaves_a_model(jobs: TrainJobs) -> None:
    jobs.submit(**jobs.texts(epochs=12, loader="rayData"))
    with jobs.phases() as phases:
        running = jobs.until_true(takes_steps, "steps of both workers")
        assert running["training"]["stage"] in ("Training", "Evaluating")
        jobs.kubectl("wait", "--for=condition=Complete", "trainjob/job", f"--timeout={LONG}s")
        eventually(lambda: phases[-1] == "Succeeded", LONG)
    assert phases == ["Pending", "Starting", "Running", "Succeeded"]
    status = jobs.status()
    training = status["training"]
    assert (status["phase"], training["stage"], training["percent"]) == ("Succeeded", "Finished", 100)
    assert training["step"] > running["training"]["step"]
    assert training["metrics"]["validation_f1"] > 0.5
    assert training["evaluation"]["test_f1"] > 0.5
    best = training["bestCheckpoint"]["uri"]
    predicted = jobs.store.trainjob("predict", best, "--text", "red1 red2 red3 red4")
    assert "red" in predicted.stdout, predicted.stderr
    run = f"{BUCKET}/{jobs.namespace}/{jobs.run()}"
    assert b"<html" in jobs.store.read(f"{run}/report.html")
    assert json.loads(jobs.store.read(f"{run}/evaluation.json"))["test"]["rows"] == 151
    jobs.until_gone()
    assert {"Created", "Started", "Succeeded"} <= set(jobs.events())


def takes_steps(status: Status) -> bool:
    return status.get("training", {}).get("step", 0) > 0 and status["workers"] == {"desired": 2, "ready": 2}


def test_an_image_classifier_has_four_workers_in_two_pods(jobs: TrainJobs) -> None:
    digits = {name: {"uri": f"s3://{BUCKET}/digits/{name}"} for name in ("train", "test")}
    jobs.submit(
        model={"imageClassifier": {"cnn": {"channels": [8, 16], "hidden": 32}, "dropout": 0.1}},
        dataset=digits | {"loader": "dataLoader"},
        training={"epochs": 8, "batchSize": 32, "optimizer": {"adamW": {"learningRate": 5.0e-3}}},
        checkpoints={},
        workers={"count": 4, "perPod": 2},
    )
    jobs.until_true(lambda status: status.get("workers") == {"desired": 4, "ready": 4}, "its workers")
    assert len(jobs.pods("worker")) == 2
    assert jobs.until_phase("Succeeded")["training"]["evaluation"]["test_accuracy"] > 0.9


def test_a_function_of_ones_own_comes_from_a_config_map(jobs: TrainJobs) -> None:
    jobs.submit_function("""
        import torch
        from ray import train
        from ray.train.torch import prepare_model

        def train_loop(config):
            model = prepare_model(torch.nn.Linear(1, 1))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(config["epochs"]):
                x = torch.rand(64, 1)
                loss = ((model(x) - 2 * x) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                train.report({"loss": loss.item(), "epoch": epoch + 1})
    """)
    status = jobs.until_phase("Succeeded")
    assert status["training"]["metrics"]["epoch"] == 20


def test_storage_may_be_a_persistent_volume_claim(jobs: TrainJobs) -> None:
    jobs.cluster.apply(jobs.claim("runs"))
    storage = {**jobs.storage(), "persistentVolumeClaim": "runs"}
    del storage["uri"]
    jobs.submit(storage=storage, workers={"count": 1})
    status = jobs.until_phase("Succeeded")
    assert status["training"]["bestCheckpoint"]["uri"].startswith("/mnt/storage/")
