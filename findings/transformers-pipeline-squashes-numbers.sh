#!/usr/bin/env bash
# transformers' pipeline gives 1.0 for the 250 that a regression predicts, if config.json does not say "regression".
#
# Seen with: transformers 5.23.0, torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# One output without a problem_type is taken for the probability of one class, and goes through a sigmoid. The loss in
# the model's own forward pass takes the same configuration for a regression and sets problem_type; so that it is
# missing after a loop that computes its own loss: Huber, pairs of a reward model, weights of rows. All large numbers
# are then 1.0, and small ones no longer add up; their order stays. function_to_apply="none" gives the numbers.
#
# Output seen:
#   the model predicts 250.0, pipeline: 1.0
#   function_to_apply="none": 250.0
#   after one call with labels, problem_type regression: 250.0
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check transformers==5.23.0 torch==2.15.0

cat > number.py <<'PYTHON'
import torch
from tokenizers import Tokenizer, models
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, pipeline

words = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1, "price": 2}, unk_token="[UNK]"))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]")
sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
model = BertForSequenceClassification(BertConfig(vocab_size=3, num_labels=1, **sizes)).eval()
with torch.no_grad():
    model.classifier.weight.zero_()
    model.classifier.bias.fill_(250.0)


def score(**options):
    model.save_pretrained("model")
    tokenizer.save_pretrained("model")
    return pipeline("text-classification", model="model", **options)("price")[0]["score"]


inputs = tokenizer("price", return_tensors="pt")
predicted = model(input_ids=inputs["input_ids"]).logits.item()
print(f"the model predicts {predicted}, pipeline: {score()}")
print('function_to_apply="none":', score(function_to_apply="none"))
model(input_ids=inputs["input_ids"], labels=torch.tensor([200.0]))
print(f"after one call with labels, problem_type {model.config.problem_type}: {score()}")
PYTHON

venv/bin/python number.py 2>/dev/null | tee found
diff seen found
