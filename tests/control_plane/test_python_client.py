"""The Python client of TrainJobs on a cluster."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from test_runs_of_jobs import stored, trained

import trainjob
from cluster.jobs import Jobs, document, eventually
from tiny_sets import write_texts
from trainjob.api import Metadata, TrainJob
from trainjob.api.document import InvalidDocument
from trainjob.cluster import JobFailed, JobTimeout, NoSuchJob, Refused


@pytest.fixture
def client(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> trainjob.Client:
    monkeypatch.setenv("KUBECONFIG", str(jobs.cluster.kubeconfig))
    return trainjob.Client(namespace=jobs.namespace)


def test_jobs_are_submitted_and_followed(jobs: Jobs, client: trainjob.Client, tmp_path: Path):
    content = document("tags")
    job = client.submit(content, ["spec.retries=2"])
    typed = TrainJob.model_validate(content).model_copy(update={"metadata": Metadata(name="typed")})
    assert client.submit(typed).name == "typed"
    file = tmp_path / "job.yaml"
    file.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: code}}\n---\n{content}")
    assert client.submit(file, ["spec.retries=2"]).name == "tags"
    assert jobs.get("configmaps", "code") is not None
    found = jobs.get("trainjobs", "tags")
    assert found is not None
    assert found["spec"]["retries"] == 2
    assert [(each.name, each.namespace) for each in client.jobs()] == [
        ("tags", jobs.namespace),
        ("typed", jobs.namespace),
    ]
    assert {"tags", "typed"} <= {each.name for each in client.jobs(all_namespaces=True)}

    with pytest.raises(JobTimeout, match="tags has not ended within 1 s: no phase yet: the operator has not seen"):
        job.wait(timeout=1)
    training = {"stage": "Training", "percent": 31.4, "metrics": {"validation_<f1>": 0.75}}
    jobs.report("trainjobs", "tags", {"phase": "Running", "reason": "Training", "training": training})
    assert repr(job.refresh()) == f"<Job tags in {jobs.namespace}: Running, Training>"
    html = job._repr_html_()
    assert '<progress max="100" value="31.4"></progress> 31%' in html
    assert "validation_&lt;f1&gt; 0.75" in html
    jobs.report("trainjobs", "tags", {"phase": "Succeeded", "reason": "Succeeded"})
    seen: list[Any] = []
    assert job.wait(timeout=60, on_progress=seen.append).status.phase == "Succeeded"
    assert [status.percent for status in seen] == [31.4]

    async def same() -> None:
        again = await trainjob.AsyncClient(namespace=jobs.namespace).job("tags")
        assert (await again.wait(on_progress=seen.append)).status.phase == "Succeeded"

    asyncio.run(same())
    assert [status.percent for status in seen] == [31.4, 31.4]
    jobs.report("trainjobs", "typed", {"phase": "Failed", "reason": "TrainingFailed", "message": "worker 1 raised"})
    failed = client.job("typed")
    with pytest.raises(JobFailed, match="typed: Failed, TrainingFailed: worker 1 raised"):
        failed.wait()
    failed.delete()
    with pytest.raises(NoSuchJob):
        failed.refresh()


def test_cancelling_an_await_leaves_the_job_and_no_thread(jobs: Jobs, client: trainjob.Client):
    async def follow() -> None:
        asynchronous = trainjob.AsyncClient(namespace=jobs.namespace)
        job = await asynchronous.submit(document("tags"))
        with pytest.raises(NoSuchJob, match="did you mean tags"):
            await asynchronous.job("tag")
        seen: list[Any] = []

        async def read_log() -> list[str]:
            return [line async for line in job.logs(follow=True)]

        waits: list[asyncio.Task[Any]] = [
            asyncio.create_task(job.wait(on_progress=seen.append)),
            asyncio.create_task(read_log()),
        ]
        for percent in (25.0, 50.0):  # the second while the watch waits for it
            await asyncio.to_thread(jobs.report, "trainjobs", "tags", {"training": {"percent": percent}})
            await asyncio.to_thread(eventually, lambda at=percent: [each.percent for each in seen][-1:] == [at])
        assert job.status.training == seen[-1]
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
        assert all(wait.cancelled() for wait in waits)
        await job.suspend()
        assert [each.name for each in await asynchronous.jobs()] == ["tags"]

    asyncio.run(follow())
    eventually(lambda: not [each for each in threading.enumerate() if each.name.startswith("trainjob")])
    found = jobs.get("trainjobs", "tags")
    assert found is not None
    assert (found["spec"]["suspend"], found["spec"]["cancel"]) == (True, False)


def test_invalid_jobs_are_not_submitted(jobs: Jobs, client: trainjob.Client):
    content = document("tags")
    with pytest.raises(InvalidDocument, match=r"spec.workers.cuont  unknown field; did you mean count\?"):
        client.submit(content, ["spec.workers.cuont=2"])
    with pytest.raises(InvalidDocument, match=r"TrainJob  spec.retries  must be at least 0, got -1"):
        client.submit({**content, "spec": {**content["spec"], "retries": -1}})
    with pytest.raises(InvalidDocument, match=r"a value that YAML does not have: .*cannot represent an object"):
        client.submit({**content, "spec": object()})
    with pytest.raises(InvalidDocument, match=r"rows.csv is a path on this machine"):
        client.submit(content, ["spec.dataset.train.uri=rows.csv"])
    assert client.jobs() == []
    client.submit(content)
    with pytest.raises(Refused):
        client.submit(content, ["spec.dataset.label=other"])


def test_the_run_of_a_job_is_read(jobs: Jobs, client: trainjob.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run = stored(jobs, "tags", tmp_path / "storage", "Succeeded")
    (tmp_path / "texts").mkdir()
    trained(run, write_texts(tmp_path / "texts"))
    (run / "metrics.jsonl").write_text('{"kind": "step", "step": 1, "epoch": 1, "time": 0, "loss": 0.5}\n')
    logs = run / "logs" / "attempt-1"
    logs.mkdir(parents=True)
    (logs / "rank-0.log").write_text("loss 0.5\nloss 0.25\n")
    job = client.job("tags")
    assert job.metrics()["loss"].tolist() == [0.5]
    assert list(job.logs()) == ["loss 0.5", "loss 0.25"]
    answers = job.predictor().predict(["red1 blue2"])  # pyrefly: ignore[missing-attribute]
    assert job.pull() == Path("tags")
    assert trainjob.Predictor.load("tags").predict(["red1 blue2"]) == answers
    assert job.pull("report", "report").joinpath("report.html").exists()

    async def read() -> None:
        same = await trainjob.AsyncClient(namespace=jobs.namespace).job("tags")
        assert (await same.metrics())["loss"].tolist() == [0.5]
        assert [line async for line in same.logs()] == ["loss 0.5", "loss 0.25"]
        assert (await same.predictor()).predict(["red1 blue2"]) == answers  # pyrefly: ignore[missing-attribute]
        assert await same.pull("again") == Path("again")

    asyncio.run(read())
    assert sorted(Path("again").rglob("*.json")) != []
