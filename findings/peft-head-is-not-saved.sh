#!/usr/bin/env bash
# LoRA of a classifier without task_type neither trains nor saves the new head, and the adapter loads without a word.
#
# Seen with: peft 0.21.2, transformers 5.23.0, torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# The head is not part of a pretrained encoder: it is made at random. task_type="SEQ_CLS" makes peft train it and write
# it next to the matrices. Without, which is valid and needs no other change, it stays as it was drawn; the matrices
# learn to fit it, training goes well, and the folder lacks it. Whoever loads the encoder and the adapter gets another
# random head and another answer each time.
#
# Output seen:
#   task_type=SEQ_CLS: trained head: True, in the file: True, loaded twice, same answer: True
#   task_type=None: trained head: False, in the file: False, loaded twice, same answer: False
#   messages of peft: none
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check peft==0.21.2 transformers==5.23.0 torch==2.15.0

cat > adapt.py <<'PYTHON'
import logging
import warnings

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification, BertConfig, BertModel

messages = []


class Messages(logging.Handler):
    def emit(self, record):
        messages.append(record.getMessage())


logging.getLogger("peft").addHandler(Messages())
warnings.filterwarnings("error", module="peft")
sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
BertModel(BertConfig(vocab_size=10, **sizes)).save_pretrained("encoder")
ids = torch.tensor([[1, 2, 3]])


def classifier():
    return AutoModelForSequenceClassification.from_pretrained("encoder", num_labels=2)


def answer(folder):
    with torch.no_grad():
        return PeftModel.from_pretrained(classifier(), folder).eval()(ids).logits


for task_type in ("SEQ_CLS", None):
    model = get_peft_model(classifier(), LoraConfig(task_type=task_type, target_modules=["query", "value"]))
    trained = any("classifier" in name for name, weight in model.named_parameters() if weight.requires_grad)
    folder = f"adapter-{task_type}"
    model.save_pretrained(folder)
    saved = any("classifier" in name for name in load_file(f"{folder}/adapter_model.safetensors"))
    same = torch.equal(answer(folder), answer(folder))
    print(f"task_type={task_type}: trained head: {trained}, in the file: {saved}, loaded twice, same answer: {same}")
print("messages of peft:", *messages or ["none"])
PYTHON

venv/bin/python adapt.py 2>/dev/null | tee found
diff seen found
