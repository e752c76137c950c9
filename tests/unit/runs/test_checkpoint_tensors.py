"""Tensors that some ranks have written are read by any number of others."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from trainjob.errors import StorageError
from trainjob.runs import checkpoints
from trainjob.runs.checkpoints import CheckpointTensors, TensorRows, write_rank_tensors
from trainjob.runs.digests import digests_of
from trainjob.storage import Folder

TENSORS = {
    "model.matrix": np.arange(35, dtype=np.float32).reshape(7, 5),
    "model.vector": np.arange(6, dtype=np.int64),
    "model.single": np.array(2.5, dtype=np.float32),
    "model.flags": np.array([True, False, True]),
    "model.empty": np.zeros((0, 4), dtype=np.float32),
    "optimizer.exp_avg.matrix": np.arange(35, dtype=np.float32).reshape(7, 5) / 3,
}
TYPES = {"float32": "F32", "int64": "I64", "bool": "BOOL"}


def write(folder: Path, ranks: int) -> CheckpointTensors:
    """Writes tensors as this many ranks do: each has the same number of rows of a tensor, the last ones fewer."""
    for rank in range(ranks):
        own: list[TensorRows] = []
        for name, tensor in TENSORS.items():
            size = -(-len(tensor) // ranks) if tensor.shape else 1
            rows = tensor[rank * size :][:size] if tensor.shape else tensor
            if (tensor.shape and len(rows)) or rank == 0:
                count = len(rows) if tensor.shape else 1
                data = memoryview(np.ascontiguousarray(rows).tobytes())
                own.append(TensorRows(name, TYPES[str(tensor.dtype)], tensor.shape, rank * size, count, data))
        write_rank_tensors(folder, rank, own)
    return CheckpointTensors(Folder(str(folder)), digests_of(folder))


@pytest.mark.parametrize("ranks", [1, 2, 3, 9])
@pytest.mark.parametrize("at_once", [1, 48, 2**20])
def test_any_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int, at_once: int):
    monkeypatch.setattr(checkpoints, "READ_BYTES", at_once)
    written = write(tmp_path, ranks)
    wanted = {"model.matrix": (1, 6), "model.vector": (0, 6), "model.single": (0, 1)}
    wanted["optimizer.exp_avg.matrix"] = (4, 5)
    expected = {name: np.atleast_1d(TENSORS[name])[start:end] for name, (start, end) in wanted.items()}
    found = {name: np.zeros_like(rows) for name, rows in expected.items()}
    for name, first, data in written.read([(name, *rows) for name, rows in wanted.items()]):
        rows = np.frombuffer(data, found[name].dtype).reshape(-1, *found[name].shape[1:])
        found[name][first - wanted[name][0] :][: len(rows)] = rows
    for name, rows in expected.items():
        np.testing.assert_array_equal(found[name], rows)


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_model_is_exported_as_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int):
    monkeypatch.setattr(checkpoints, "READ_BYTES", 48)
    write(tmp_path, ranks).export(tmp_path / "model.safetensors")
    exported = load_file(tmp_path / "model.safetensors")
    assert exported.keys() == {name.removeprefix("model.") for name in TENSORS if name.startswith("model.")}
    for name, tensor in exported.items():
        np.testing.assert_array_equal(tensor, TENSORS[f"model.{name}"])


def test_names_and_types_are_told(tmp_path: Path):
    written = write(tmp_path, 2)
    assert written.names("optimizer.") == ["optimizer.exp_avg.matrix"]
    assert written.type("model.matrix") == ("F32", (7, 5))
    assert written.type("model.single") == ("F32", ())
    assert written.type("model.other") is None


def test_a_file_that_is_cut_off_is_told(tmp_path: Path):
    written = write(tmp_path, 1)
    (tmp_path / "state" / "00000.bin").write_bytes(b"short")
    with pytest.raises(StorageError, match=r"state/00000\.bin is cut off: it has fewer than"):
        list(written.read([("model.matrix", 0, 7)]))


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_part_that_is_missing_is_told(tmp_path: Path, rank: int):
    written = write(tmp_path, 3)
    for file in (tmp_path / "state").glob(f"{rank:05d}.*"):
        file.unlink()
    with pytest.raises(StorageError, match=r"state does not contain each of the 7 rows of model\.matrix exactly once"):
        written.export(tmp_path / "model.safetensors")


def test_a_part_of_another_number_of_ranks_is_told(tmp_path: Path):
    write(tmp_path / "other", 2)
    written = write(tmp_path, 3)
    for file in (tmp_path / "other" / "state").glob("00001.*"):
        file.rename(tmp_path / "state" / file.name)
    with pytest.raises(StorageError, match="does not contain each of"):
        written.names()


def test_parts_that_are_none_of_the_checkpoints_are_passed_over(tmp_path: Path):
    """An attempt of more ranks, which was replaced while it uploaded, has left them."""
    write(tmp_path / "other", 3)
    written = write(tmp_path, 2)
    for file in (tmp_path / "other" / "state").glob("00002.*"):
        file.rename(tmp_path / "state" / file.name)
    written.export(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load_file(tmp_path / "model.safetensors")["matrix"], TENSORS["model.matrix"])
