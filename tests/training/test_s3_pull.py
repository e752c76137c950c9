"""A run is pulled from a real S3 server that goes away meanwhile."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from minio_server import MinIO

from trainjob.runs import pull as pulling
from trainjob.runs.digests import digests_of, write_digests
from trainjob.runs.pull import pull
from trainjob.storage import Folder


def test_a_pull_goes_on_when_the_server_is_back(
    minio: MinIO, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pulling, "BLOCK_BYTES", 2**16)
    run, source, target = Folder(f"s3://{bucket}/runs/tags", minio.endpoint), tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "config.json").write_text("{}")
    (source / "model.safetensors").write_bytes(os.urandom(2**22))
    write_digests(run / "model", digests_of(source))
    run.upload(source, "model")
    run.write("trainjob.yaml", b"kind: TrainJob\n")
    is_half_way = Event()

    def on_progress(done: int, total: int) -> None:
        if done > total / 2:
            is_half_way.set()

    with ThreadPoolExecutor() as threads:
        pulled = threads.submit(pull, run, target, "model", on_progress)
        is_half_way.wait()
        minio.stop()
        time.sleep(1)
        minio.start()
        assert pulled.result().copied == 4
    assert digests_of(target / "model").items() > digests_of(source).items()
    assert pull(run, target, "model", lambda *_: None).copied == 0
