"""The minimum of PyTorch and transformers for a first step under torchrun: the text example's model, random rows.

    python -m torch.distributed.run --nproc-per-node=2 benchmarks/bare/first_step.py FILE

writes the time of the first step into FILE, in seconds since 1970.
"""

import sys
import time
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from transformers.models.modernbert.configuration_modernbert import ModernBertConfig
from transformers.models.modernbert.modeling_modernbert import ModernBertForSequenceClassification

VOCABULARY = 16000


def main() -> None:
    distributed.init_process_group("gloo")
    network = ModernBertConfig(
        vocab_size=VOCABULARY, hidden_size=192, num_hidden_layers=1, num_attention_heads=4, intermediate_size=384,
        max_position_embeddings=128, pad_token_id=0, cls_token_id=2, bos_token_id=2, sep_token_id=3, eos_token_id=3,
        classifier_pooling="mean", id2label=dict(enumerate("abcdefghij")),
    )  # fmt: skip
    model = DistributedDataParallel(ModernBertForSequenceClassification(network))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    tokens, labels = torch.randint(VOCABULARY, (32, 64)), torch.randint(10, (32,))
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=labels).loss
    loss.backward()
    optimizer.step()
    if distributed.get_rank() == 0:
        Path(sys.argv[1]).write_text(str(time.time()))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
