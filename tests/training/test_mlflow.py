"""Runs written to a real MLflow server that is killed, slow and full."""

from collections.abc import Callable, Generator
from pathlib import Path

import mlflow_server
import pytest
from mlflow.entities import Run as TrackedRun
from mlflow.tracking import MlflowClient
from mlflow_server import Proxy, Server
from training_runs import Run, kill_driver
from typer.testing import CliRunner

from trainjob.cli.app import app
from trainjob.errors import UserError

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200)]

NewRun = Callable[..., Run]


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Server, Proxy]]:
    with mlflow_server.running(tmp_path_factory.mktemp("mlflow")) as running:
        yield running


def tracked_runs(proxy: Proxy, experiment: str) -> list[TrackedRun]:
    client = MlflowClient(proxy.url, proxy.url)
    found = client.get_experiment_by_name(experiment)
    return [] if found is None else list(client.search_runs([found.experiment_id]))


def test_a_run_of_two_attempts_with_the_server_killed_between_is_one_run(
    new_run: NewRun, mlflow: tuple[Server, Proxy], tmp_path: Path
):
    server, proxy = mlflow
    tracking = [{"mlflow": {"uri": proxy.url, "experiment": "killed", "register": "digits"}}]
    run = new_run("image", {"tracking": tracking, "dataset.loader": "dataLoader"})
    server.kill()
    assert run.end_at_checkpoint(kill_driver) != 0  # the first attempt has seen no server
    done = run.finish()
    assert "mlflow is behind" in done.stderr
    failed = CliRunner().invoke(app, ["track", str(run.folder)])
    assert isinstance(failed.exception, UserError)
    server.start()
    for _ in range(2):  # the second finds nothing to do
        caught_up = CliRunner().invoke(app, ["track", str(run.folder)], catch_exceptions=False)
        assert caught_up.exit_code == 0
    [tracked] = tracked_runs(proxy, "killed")
    assert tracked.info.status == "FINISHED"
    assert f"/runs/{tracked.info.run_id}" in caught_up.stdout
    assert tracked.data.tags["trainjob.attempt"] == "2"
    assert tracked.data.params["training.batchSize"] == "16"
    client = MlflowClient(proxy.url, proxy.url)
    losses = client.get_metric_history(tracked.info.run_id, "loss")
    assert [(each.step, each.value) for each in losses] == [
        (record["step"], record["loss"]) for record in run.records("step")
    ]
    assert tracked.data.metrics["best/test_accuracy"] == run.read("evaluation.json")["test"]["accuracy"]
    assert tracked.inputs is not None
    assert {each.dataset.name for each in tracked.inputs.dataset_inputs} == {"train", "test"}
    assert [file.path for file in client.list_artifacts(tracked.info.run_id)] == [
        "model",
        "report.html",
        "summary.json",
    ]
    [version] = client.search_model_versions("name = 'digits'")
    assert version.run_id == tracked.info.run_id
    weights = client.download_artifacts(tracked.info.run_id, "model/model.safetensors", str(tmp_path))
    assert Path(weights).read_bytes() == (run.folder / "model" / "model.safetensors").read_bytes()


def test_a_server_that_is_slow_and_full_ends_up_with_every_record(new_run: NewRun, mlflow: tuple[Server, Proxy]):
    _, proxy = mlflow
    tracking = [{"mlflow": {"uri": proxy.url, "experiment": "full"}}]
    run = new_run("image", {"dataset.loader": "dataLoader", "training.epochs": 2})
    run.finish()
    track = ["track", str(run.folder), "--set", f"spec.tracking={tracking}"]
    proxy.delay = 0.5
    for proxy.status in (507, 500):
        failed = CliRunner().invoke(app, track)
        assert isinstance(failed.exception, UserError)
        assert str(proxy.status) in str(failed.exception)
    proxy.delay, proxy.status, proxy.limit = 0.0, 413, 6000  # smaller than the metrics of all steps, and the report
    failed = CliRunner().invoke(app, track)
    assert "413" in str(failed.exception)
    [tracked] = tracked_runs(proxy, "full")
    proxy.status = 0
    losses = MlflowClient(proxy.url, proxy.url).get_metric_history(tracked.info.run_id, "loss")
    assert [each.step for each in losses] == [record["step"] for record in run.records("step")]
    assert CliRunner().invoke(app, track, catch_exceptions=False).exit_code == 0
    [tracked] = tracked_runs(proxy, "full")
    assert tracked.info.status == "FINISHED"
