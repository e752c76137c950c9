"""A model is read from its folder, or from a checkpoint's, only where all of its files are those that were saved."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from trainjob.api import Checkpoints
from trainjob.errors import StorageError
from trainjob.runs.checkpoints import TensorRows, write_rank_tensors
from trainjob.runs.model import local_copy, save_as_model, write_model
from trainjob.storage import Folder
from trainjob.worker.checkpointing import CheckpointStore

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)
TEXTS = (
    "config.json",
    "preprocessor.json",
    "1_Pooling/config.json",
    "progress.json",
    "evaluation.json",
    "ranks/00000.pt",
)


def part(folder: Path, rank: int, weights: np.ndarray) -> None:
    write_rank_tensors(
        folder, rank, [TensorRows("model.w", "F32", weights.shape, 0, len(weights), memoryview(weights.tobytes()))]
    )


def saved(run: Path) -> tuple[Folder, dict[str, str]]:
    """A checkpoint, and its files with their digests."""

    def write(folder: Path) -> None:
        part(folder, 0, WEIGHTS)
        for name in TEXTS:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(f"what is in {name}")

    store = CheckpointStore(Folder(str(run)), Checkpoints())
    name = store.save(1, 10, {"validation_loss": 0.5}, write)
    manifest = store.manifest(name)
    assert manifest is not None
    return store / name, manifest.files


@pytest.fixture
def checkpoint(tmp_path: Path) -> Folder:
    return saved(tmp_path / "run")[0]


@pytest.fixture
def model(tmp_path: Path) -> Folder:
    save_as_model(*saved(tmp_path / "run"), Folder(str(tmp_path / "run" / "model")))
    return Folder(str(tmp_path / "run" / "model"))


def spoil(file: Path, damage: str) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    match damage:
        case "changed":
            file.write_bytes(content)
        case "cut off":
            file.write_bytes(content[:-1])
        case _:
            file.unlink()


def load(folder: Folder) -> dict[str, np.ndarray]:
    with local_copy(folder) as here:
        assert (here / "config.json").read_text() == "what is in config.json"
        return load_file(here / "model.safetensors")


def elsewhere(folder: Folder) -> Folder:
    """The same folder, by an address of which a copy is made."""
    return Folder(f"file://{folder.uri}")


@pytest.mark.parametrize("damage", ["changed", "cut off", "missing"])
@pytest.mark.parametrize("name", ["config.json", "preprocessor.json", "1_Pooling/config.json", "model.safetensors"])
def test_a_model_that_is_damaged_is_told(model: Folder, name: str, damage: str):
    assert np.array_equal(load(model)["w"], WEIGHTS)
    assert np.array_equal(load(elsewhere(model))["w"], WEIGHTS)
    spoil(Path(model.uri, name), damage)
    for folder in (model, elsewhere(model)):
        with pytest.raises(StorageError) as told:
            load(folder)
        assert str(told.value) == (
            f"{folder.uri}: {name} is missing, or is not the saved file, whose SHA-256 is in digests.json: "
            "copy the folder again, or remove digests.json if you have changed the model yourself"
        )


@pytest.mark.parametrize("damage", ["changed", "cut off", "missing"])
@pytest.mark.parametrize("name", ["config.json", "state/00000.bin", "state/00000.json"])
def test_a_checkpoint_that_is_damaged_is_told(checkpoint: Folder, name: str, damage: str):
    assert np.array_equal(load(checkpoint)["w"], WEIGHTS)
    spoil(Path(checkpoint.uri, name), damage)
    for folder in (checkpoint, elsewhere(checkpoint)):
        with pytest.raises(
            StorageError, match=f"^{folder.uri}: {name} is missing, or is not .* is in checkpoint.json:"
        ):
            load(folder)


def test_a_checkpoint_whose_manifest_is_damaged_is_told(checkpoint: Folder):
    spoil(Path(checkpoint.uri, "checkpoint.json"), "cut off")
    with pytest.raises(StorageError, match=r"the checkpoint is not complete, as its checkpoint\.json is missing or"):
        load(checkpoint)


def test_what_only_training_needs_may_be_missing_of_a_checkpoint(checkpoint: Folder):
    for name in ("progress.json", "evaluation.json", "ranks"):
        checkpoint.delete(name)
    assert np.array_equal(load(checkpoint)["w"], WEIGHTS)


def test_what_a_manifest_does_not_name_is_passed_over(checkpoint: Folder):
    part(Path(checkpoint.uri), 1, WEIGHTS + 1)
    checkpoint.write("adapter_config.json", b"{}")
    assert np.array_equal(load(checkpoint)["w"], WEIGHTS)


def test_a_model_without_digests_is_loaded(model: Folder):
    """An earlier version of trainjob has written it, or its owner has changed it."""
    model.delete("digests.json")
    spoil(Path(model.uri, "preprocessor.json"), "changed")
    for folder in (model, elsewhere(model)):
        assert np.array_equal(load(folder)["w"], WEIGHTS)


def test_other_files_may_lie_beside_a_models(model: Folder):
    """For example its card, which is written later."""
    model.write("README.md", b"# A model")
    for folder in (model, elsewhere(model)):
        with local_copy(folder) as here:
            assert (here / "README.md").read_bytes() == b"# A model"


def test_damaged_digests_are_told(model: Folder):
    model.write("digests.json", b"[")
    with pytest.raises(StorageError, match=f"{model.uri}/digests.json is damaged"):
        load(model)


class CutOff(Folder):
    """Loses its server when a model's weights are to be uploaded."""

    def upload(self, local: Path, name: str) -> None:
        if name == "model.safetensors":
            raise StorageError("the server is gone")
        super().upload(local, name)


def test_a_model_that_was_replaced_in_part_is_told(model: Folder, tmp_path: Path):
    """An attempt died while it replaced the model: the files belong neither to the old model nor to the new one."""
    shutil.copytree(model.uri, tmp_path / "other", ignore=shutil.ignore_patterns("digests.json"))
    spoil(tmp_path / "other" / "model.safetensors", "changed")
    with pytest.raises(StorageError, match="the server is gone"):
        write_model(tmp_path / "other", CutOff(model.uri))
    with pytest.raises(StorageError, match=r"model\.safetensors is missing, or is not the saved file"):
        load(model)
