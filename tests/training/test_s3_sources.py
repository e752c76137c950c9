"""Data from a real S3 server."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from minio_server import MinIO
from safetensors.torch import load_file
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

from trainjob.api import Storage, TrainJobSpec
from trainjob.data import fit
from trainjob.errors import DataError, StorageError
from trainjob.models import build
from trainjob.pretrained.remote_model import local_model
from trainjob.storage import Folder
from unit.data.data_specs import (
    Rows,
    assert_same_examples,
    causal_spec,
    image_spec,
    random_images,
    save_chat_tokenizer,
    some_chats,
    some_rows,
    text_spec,
    write_csv,
    write_images,
    write_jsonl,
    write_mnist,
    write_parquet,
)

LLAMA = LlamaConfig(
    vocab_size=302,
    hidden_size=8,
    intermediate_size=8,
    num_hidden_layers=1,
    num_attention_heads=1,
    max_position_embeddings=64,
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


@pytest.mark.parametrize(("ending", "write"), [("jsonl", write_jsonl), ("parquet", write_parquet)])
def test_conversations_from_s3(ending: str, write: Writer, remote: Folder, tmp_path: Path) -> None:
    model = {"pretrained": str(save_chat_tokenizer(tmp_path / "model"))}
    local = write(tmp_path / f"chats.{ending}", some_chats(30))
    remote.upload(local, f"chats.{ending}")
    spec = on(remote, causal_spec(f"{remote.uri}/chats.{ending}", model, messages="chat"))
    assert_same_examples(spec, causal_spec(local, model, messages="chat"))


def test_prompts_and_completions_from_s3(remote: Folder, tmp_path: Path) -> None:
    local = write_csv(tmp_path / "rows.csv", some_rows())
    remote.upload(local, "rows.csv")
    here, there = (causal_spec(uri, prompt="text", completion="label") for uri in (local, f"{remote.uri}/rows.csv"))
    assert_same_examples(on(remote, there), here)


def test_images_from_s3(remote: Folder, tmp_path: Path) -> None:
    local = write_images(tmp_path / "images", {"cat": random_images(9), "dog": random_images(9, seed=1)})
    remote.upload(local, "images")
    assert_same_examples(on(remote, image_spec(f"{remote.uri}/images")), image_spec(local))


def test_a_table_of_images_from_s3(remote: Folder, tmp_path: Path) -> None:
    """Paths that are relative to the table, that go up, and that are whole addresses."""
    folder = write_images(tmp_path / "images", {"cat": random_images(9), "dog": random_images(9, seed=1)})
    remote.upload(folder, "images")
    files = sorted(folder.glob("*/*.png"))
    starts = ["../images", f"{remote.uri}/images", f"../../{remote.uri.rpartition('/')[2]}/images"]
    rows = [
        {"path": f"{starts[index % 3]}/{file.parent.name}/{file.name}", "label": file.parent.name}
        for index, file in enumerate(files)
    ]
    remote.upload(write_csv(tmp_path / "t.csv", rows), "tables/t.csv")
    local = write_csv(
        tmp_path / "local.csv", [row | {"path": str(file)} for row, file in zip(rows, files, strict=True)]
    )
    assert_same_examples(on(remote, image_spec(f"{remote.uri}/tables/t.csv")), image_spec(local))
    remote.upload(write_csv(tmp_path / "t.csv", [*rows, {"path": "no.png", "label": "cat"}]), "tables/t.csv")
    with pytest.raises(
        DataError, match=r"t\.csv, row 19 \(no\.png\): there is no file s3://.*/tables/no\.png: correct"
    ):
        fit(on(remote, image_spec(f"{remote.uri}/tables/t.csv")))


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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "trainjob"


def test_a_pretrained_model_from_s3_is_copied_once(remote: Folder, tmp_path: Path, cache: Path) -> None:
    """The cache has the weights in one format, only once they are needed, and again after others have replaced them."""
    model, chats = tmp_path / "model", write_jsonl(tmp_path / "chats.jsonl", some_chats(30))
    save_chat_tokenizer(model)
    LlamaForCausalLM(LLAMA).save_pretrained(model)
    (model / "pytorch_model.bin").write_bytes(b"the same weights in a format that runs code")
    remote.upload(model, "model")
    spec = on(remote, causal_spec(chats, {"pretrained": f"{remote.uri}/model/"}, messages="chat"))
    assert_same_examples(spec, causal_spec(chats, {"pretrained": str(model)}, messages="chat"))
    (copy,) = cache.glob("*/")
    assert not (copy / "model.safetensors").exists()
    preprocessor = fit(spec).preprocessor
    with local_model(spec, weights=True) as local:
        built = build(local, preprocessor)
    assert_weights(built.network, model)
    assert {file.name for file in copy.iterdir()} == {file.name for file in model.iterdir()} - {"pytorch_model.bin"}

    LlamaForCausalLM(LLAMA).save_pretrained(model)
    remote.upload(model / "model.safetensors", "model/model.safetensors")
    with local_model(spec, weights=True) as local:
        assert_weights(build(local, preprocessor).network, model)


def assert_weights(network: torch.nn.Module, folder: Path) -> None:
    for name, weight in load_file(folder / "model.safetensors").items():
        assert torch.equal(network.state_dict()[name], weight), name


@pytest.mark.usefixtures("cache")
def test_what_is_wrong_with_a_model_on_s3_is_told_of_its_uri(remote: Folder, tmp_path: Path) -> None:
    chats = write_jsonl(tmp_path / "chats.jsonl", some_chats(30))
    spec = on(remote, causal_spec(chats, {"pretrained": f"{remote.uri}/model"}, messages="chat"))
    with pytest.raises(DataError, match=r"^spec\.model\.causalLM\.pretrained: s3://.* no config\.json, but nothing"):
        fit(spec)
    LlamaForCausalLM(LLAMA).save_pretrained(tmp_path / "model")
    remote.upload(tmp_path / "model", "model")
    with pytest.raises(
        DataError, match=rf"^spec\.model\.causalLM\.pretrained: {remote.uri}/model has no usable tokenizer"
    ):
        fit(spec)
    elsewhere = spec.model_copy(update={"storage": Storage(uri="s3://runs", endpoint="http://127.0.0.1:1")})
    with pytest.raises(
        StorageError, match=r"^s3://.*/model: the server does not answer: check spec\.storage\.endpoint"
    ):
        fit(elsewhere)
