#!/usr/bin/env bash
# A byte-level BPE that is trained with the defaults of tokenizers drops letters that its training texts did not have.
#
# Seen with: tokenizers 0.23.3, CPython 3.11.
#
# Byte-level tokenizers are chosen because no text is unknown to them: each of the 256 bytes is a token. BpeTrainer
# makes tokens of those bytes only that it meets. Others are left out of a text, without [UNK] or an error: a language
# model that is trained on English words sees nothing of ë or 25, and a text in Japanese is empty. Training with
# initial_alphabet=ByteLevel.alphabet() has all of them.
#
# Output seen:
#   initial_alphabet=[]: 'Zoë sat' -> 'o sat', 'costs 25' -> 'costs ', '日本' -> ''
#   initial_alphabet=ByteLevel.alphabet(): 'Zoë sat' -> 'Zoë sat', 'costs 25' -> 'costs 25', '日本' -> '日本'
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  tokenizers==0.23.3

cat > letters.py <<'PYTHON'
from tokenizers import Tokenizer, decoders, models, trainers
from tokenizers.pre_tokenizers import ByteLevel


def through(alphabet: list[str], texts: list[str]) -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["the cat sat on the mat", "a host costs most"], trainer)
    return ", ".join(f"{text!r} -> {tokenizer.decode(tokenizer.encode(text).ids)!r}" for text in texts)


texts = ["Zoë sat", "costs 25", "日本"]
print("initial_alphabet=[]:", through([], texts))
print("initial_alphabet=ByteLevel.alphabet():", through(ByteLevel.alphabet(), texts))
PYTHON

venv/bin/python letters.py | tee found
diff seen found
