"""`trainjob push`, to a server that speaks the hub's protocol."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hub_server import TOKEN, Hub, hub

from trainjob.api import Checkpoints
from trainjob.cli.push import push as upload
from trainjob.errors import UserError
from trainjob.runs.checkpoints import TensorRows, write_rank_tensors
from trainjob.storage import Folder
from trainjob.worker.checkpointing import CheckpointStore

pytestmark = pytest.mark.slow

FILES = {
    "README.md": b"---\nlibrary_name: trainjob\n---\n# Tags\n",
    "config.json": b"{}",
    "model.safetensors": bytes(range(256)) * 100,
}


@pytest.fixture
def server() -> Generator[Hub]:
    with hub() as server:
        yield server


@pytest.fixture
def run(tmp_path: Path) -> Path:
    model = tmp_path / "run" / "model"
    model.mkdir(parents=True)
    for name, content in FILES.items():
        (model / name).write_bytes(content)
    return tmp_path / "run"


def push(run: Path | str, repository: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs `trainjob push` without the faster protocol, which needs more of a server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    own = {"HF_HUB_DISABLE_XET": "1", "HF_TOKEN": TOKEN} | environment
    command = [sys.executable, "-m", "trainjob", "push", str(run), repository]
    return subprocess.run(command, env=kept | own, capture_output=True, text=True, timeout=120)


def refused(run: Path | str, repository: str, address: str, token: str = TOKEN) -> str:
    """The error of a push from this process to the hub at `address`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.ENDPOINT", address)  # from HF_ENDPOINT, when it is imported
        patch.setenv("HF_TOKEN", token)
        with pytest.raises(UserError) as error:
            upload(str(run), repository)
    assert TOKEN not in str(error.value)
    return str(error.value)


def test_the_model_and_its_card_are_uploaded(server: Hub, run: Path):
    done = push(run, "team/tags", HF_ENDPOINT=server.address)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{server.address}/team/tags\n"
    assert server.repositories == {"team/tags": FILES}
    assert server.visibility == {"team/tags": "private"}
    assert server.commits == 1


def test_a_second_time_files_are_replaced_and_the_training_state_stays_here(server: Hub, run: Path):
    assert push(run, "team/tags", HF_ENDPOINT=server.address).returncode == 0
    (run / "model" / "config.json").write_bytes(b'{"a": 1}')
    (run / "model" / "trainer.pt").write_bytes(b"state")
    assert push(run / "model", "team/tags", HF_ENDPOINT=server.address).returncode == 0
    assert server.repositories == {"team/tags": FILES | {"config.json": b'{"a": 1}'}}


def test_of_a_checkpoint_its_model_is_pushed(server: Hub, tmp_path: Path):
    def write(folder: Path) -> None:
        write_rank_tensors(folder, 0, [TensorRows("model.w", "F32", (1,), 0, 1, memoryview(bytes(4)))])
        (folder / "config.json").write_bytes(b"{}")
        (folder / "ranks").mkdir()
        (folder / "ranks" / "00000.pt").write_bytes(b"state")

    store = CheckpointStore(Folder(str(tmp_path)), Checkpoints())
    name = store.save(1, 10, {}, write)
    assert push(store.uri(name), "team/tags", HF_ENDPOINT=server.address).returncode == 0
    assert server.repositories["team/tags"].keys() == {"config.json", "model.safetensors"}


def test_a_damaged_model_is_not_pushed(server: Hub, run: Path):
    (run / "model" / "digests.json").write_text(json.dumps({"model.safetensors": "0" * 64}))
    assert "model.safetensors is missing, or is not the saved file" in refused(run, "team/tags", server.address)
    assert server.repositories == {}


def test_what_cannot_be_pushed_is_told(server: Hub, run: Path, tmp_path: Path):
    address = server.address
    assert "is not a run's folder" in refused(tmp_path / "missing", "team/tags", address)
    assert "set HF_TOKEN" in refused(run, "team/tags", address, token="")
    assert "is not a valid name of a repository" in refused(run, "a/b/c", address)
    assert "no owner nobody" in refused(run, "nobody/tags", address)
    assert "is not valid: make a new one" in refused(run, "team/tags", address, token="hf_wrong")
    assert server.repositories == {}


def test_without_the_network_it_is_told_in_one_line(server: Hub, run: Path):
    done = push(run, "team/tags", HF_ENDPOINT=server.address, HF_HUB_OFFLINE="1")
    assert (done.returncode, done.stderr) == (2, "HF_HUB_OFFLINE is set: unset it to upload\n")
    assert server.repositories == {}


@pytest.mark.parametrize(
    ("status", "said"), [(403, "has no write access to team/tags"), (400, "is refused"), (500, "try again later")]
)
def test_a_refusal_of_the_hub_is_told(server: Hub, run: Path, status: int, said: str):
    server.failure = (status, "for a reason")
    message = refused(run, "team/tags", server.address)
    assert said in message
    assert "for a reason" in message


def test_a_hub_that_is_not_there_is_told(server: Hub, run: Path):
    address = server.address
    assert "cannot be reached" in refused(run, "team/tags", "http://127.0.0.1:9")
    server.failure = (200, "this is no hub")
    assert "does not answer like a Hugging Face hub" in refused(run, "team/tags", address)
