"""The text classifier of cluster_figures.py in plain Ray Train, up to its last step: no validation, no checkpoints."""

import os
import time
from typing import Any

import pyarrow as pa
import ray.data
import ray.train
import torch
from pyarrow import csv, fs
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, prepare_model
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers.models.modernbert.configuration_modernbert import ModernBertConfig
from transformers.models.modernbert.modeling_modernbert import ModernBertForSequenceClassification


def storage() -> fs.S3FileSystem:
    return fs.S3FileSystem(endpoint_override=os.environ["ENDPOINT"])


def train_loop(config: dict[str, Any]) -> None:
    network = ModernBertConfig(
        vocab_size=400, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=128, pad_token_id=0, cls_token_id=2, bos_token_id=2, sep_token_id=3, eos_token_id=3,
        classifier_pooling="mean", id2label=dict(enumerate(config["classes"])),
    )  # fmt: skip
    model = prepare_model(ModernBertForSequenceClassification(network))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    rows = ray.train.get_dataset_shard("train")
    assert rows is not None
    step = 0
    for _ in range(config["epochs"]):
        for batch in rows.iter_torch_batches(batch_size=8, local_shuffle_buffer_size=1000):
            optimizer.zero_grad()
            model(input_ids=batch["ids"], attention_mask=batch["mask"], labels=batch["label"]).loss.backward()
            optimizer.step()
            step += 1
            if step == 1 and ray.train.get_context().get_world_rank() == 0:
                with storage().open_output_stream(f"{os.environ['FOLDER']}/first-step") as file:
                    file.write(str(time.time()).encode())
    ray.train.report({"step": step})


def main() -> None:
    with storage().open_input_stream(os.environ["DATA"]) as file:
        table = csv.read_csv(file)
    texts = [
        f"{title} {body}" for title, body in zip(table["title"].to_pylist(), table["body"].to_pylist(), strict=True)
    ]
    classes = table["label"].unique().to_pylist()
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special))
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=128)
    coded = tokenizer.encode_batch(texts)
    rows = pa.table(
        {
            "ids": [each.ids for each in coded],
            "mask": [each.attention_mask for each in coded],
            "label": [classes.index(label) for label in table["label"].to_pylist()],
        }
    )
    TorchTrainer(
        train_loop,
        train_loop_config={"classes": classes, "epochs": 1},
        scaling_config=ScalingConfig(num_workers=2, placement_strategy="SPREAD"),  # pyrefly: ignore[bad-argument-type]
        run_config=RunConfig(name="bare", storage_path=os.environ["FOLDER"], storage_filesystem=storage()),  # pyrefly: ignore[bad-argument-type]
        datasets={"train": ray.data.from_arrow(rows)},
    ).fit()


if __name__ == "__main__":
    main()
