"""Data from a real S3 server."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from minio_server import MinIO

from trainjob.api import Storage, TrainJobSpec
from trainjob.data import fit
from trainjob.errors import DataError, StorageError
from trainjob.storage import Folder
from unit.data.data_specs import (
    Rows,
    assert_same_examples,
    image_spec,
    random_images,
    some_rows,
    text_spec,
    write_csv,
    write_images,
    write_jsonl,
    write_mnist,
    write_parquet,
)

Writer = Callable[[Path, Rows], Path]


@pytest.fixture
def remote(minio: MinIO, bucket: str) -> Folder:
    return Folder(f"s3://{bucket}/data", minio.endpoint)


def on(remote: Folder, spec: TrainJobSpec) -> TrainJobSpec:
    return spec.model_copy(update={"storage": Storage(uri=remote.uri, endpoint=remote.endpoint)})


@pytest.mark.parametrize(("ending", "write"), [("csv", write_csv), ("jsonl", write_jsonl), ("parquet", write_parquet)])
@pytest.mark.parametrize("uri", ["/part-0.{}", "", "/part-*.{}"])
def test_tables_from_s3(ending: str, write: Writer, uri: str, remote: Folder, tmp_path: Path) -> None:
    rows = some_rows()
    write(tmp_path / f"part-0.{ending}", rows if "0" in uri else rows[:40])
    if "0" not in uri:
        write(tmp_path / f"part-1.{ending}", rows[40:])
    for path in tmp_path.glob(f"*.{ending}"):
        remote.upload(path, path.name)
    local = write(tmp_path / "whole" / f"all.{ending}", rows)
    assert_same_examples(on(remote, text_spec(remote.uri + uri.format(ending))), text_spec(local))


def test_images_from_s3(remote: Folder, tmp_path: Path) -> None:
    local = write_images(tmp_path / "images", {"cat": random_images(9), "dog": random_images(9, seed=1)})
    remote.upload(local, "images")
    assert_same_examples(on(remote, image_spec(f"{remote.uri}/images")), image_spec(local))


def test_mnist_from_s3(remote: Folder, tmp_path: Path) -> None:
    path = write_mnist(tmp_path / "digits", np.stack(random_images(30)), np.arange(30) % 3, zipped=True)
    remote.upload(path.parent, "digits")
    assert_same_examples(on(remote, image_spec(f"{remote.uri}/digits")), image_spec(path))


def test_nothing_at_an_s3_uri(remote: Folder) -> None:
    with pytest.raises(DataError, match=r"s3://.*/absent\.csv: there is nothing here"):
        fit(on(remote, text_spec(f"{remote.uri}/absent.csv")))


def test_credentials_that_s3_refuses(remote: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StorageError, match=r"access is refused: check AWS_ACCESS_KEY_ID"):
        fit(on(remote, text_spec(f"{remote.uri}/rows.csv")))
