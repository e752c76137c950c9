"""Folders on a real S3 server."""

from dataclasses import replace

import pytest
from minio_server import MinIO

from folder_contract import FolderContract
from ownership import OwnershipContract
from trainjob.errors import StorageError, StorageUnreachable
from trainjob.storage import Folder


class TestS3Folder(FolderContract):
    @pytest.fixture
    def folder(self, minio: MinIO, bucket: str) -> Folder:
        return Folder(f"s3://{bucket}/some/run", minio.endpoint)


class TestS3Ownership(OwnershipContract):
    @pytest.fixture
    def folder(self, minio: MinIO, bucket: str) -> Folder:
        return Folder(f"s3://{bucket}/some/run", minio.endpoint)


def test_a_missing_bucket(minio: MinIO) -> None:
    with pytest.raises(StorageError, match=r"s3://no-such-bucket/x/y: there is no such bucket"):
        Folder("s3://no-such-bucket/x", minio.endpoint).write("y", b"x")


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials(minio: MinIO, bucket: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "wrongwrongwrong")
    with pytest.raises(StorageError, match=r"check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.*secretName") as raised:
        Folder(f"s3://{bucket}", minio.endpoint).write("y", b"x")
    assert not isinstance(raised.value, StorageUnreachable)
    for secret in (minio.access_key, minio.secret_key, "wrongwrongwrong"):
        assert secret not in str(raised.value)


def test_a_server_that_was_there_is_waited_for(minio: MinIO, bucket: str) -> None:
    folder = Folder(f"s3://{bucket}", minio.endpoint)
    folder.write("name", b"before")
    minio.stop()
    told: list[str] = []

    def tell(message: str) -> None:
        if not told:
            minio.start()
        told.append(message)

    (replace(folder, on_wait=tell) / "deep").write("name", b"after")
    assert folder.read("deep/name") == b"after"
    assert told[0].startswith(f"waiting for storage: s3://{bucket}/deep/name: the server does not answer")
    assert told[-1] == ""


def test_what_a_killed_server_left_of_a_write_can_be_removed(minio: MinIO, bucket: str) -> None:
    (minio.folder / "data" / bucket / "checkpoint" / "weights" / "half").mkdir(parents=True)
    folder = Folder(f"s3://{bucket}", minio.endpoint)
    assert folder.list() == ["checkpoint"]
    folder.delete("checkpoint")


def test_the_endpoint_can_come_from_the_environment(minio: MinIO, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", minio.endpoint)
    Folder(f"s3://{bucket}").write("name", b"x")
    assert Folder(f"s3://{bucket}", minio.endpoint).list() == ["name"]
