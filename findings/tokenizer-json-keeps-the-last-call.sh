#!/usr/bin/env bash
# transformers saves the truncation and padding of the last call in tokenizer.json, and other libraries obey it.
#
# Seen with: transformers 5.23.0, tokenizers 0.23.3, CPython 3.11.
#
# Arguments of a call, such as max_length=3 for a look at a few texts, set the state of the tokenizer below, and
# save_pretrained writes this state. transformers itself sets it anew with each call, so nothing shows. What reads
# tokenizer.json by the tokenizers package, such as servers in Rust, cuts every text there, or pads it. The side that
# was cut comes back even in transformers, although the attribute has been reset.
#
# Output seen:
#   saved before any call: a b c d e
#   saved after max_length=3: a b c
#   the same, by AutoTokenizer: a b c d e
#   saved after padding to 7: a b [PAD] [PAD] [PAD] [PAD] [PAD]
#   cut on the left once, saved with truncation_side "right": loaded with "left"
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3

cat > save.py <<'PYTHON'
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

TEXT = "a b c d e"
words = {word: number for number, word in enumerate(f"[UNK] [PAD] {TEXT}".split())}
plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]", pad_token="[PAD]", model_max_length=512)


def saved(text):
    tokenizer.save_pretrained("model")
    return " ".join(Tokenizer.from_file("model/tokenizer.json").encode(text).tokens)


print("saved before any call:", saved(TEXT))
tokenizer(TEXT, truncation=True, max_length=3)
print("saved after max_length=3:", saved(TEXT))
loaded = AutoTokenizer.from_pretrained("model")
print("the same, by AutoTokenizer:", *loaded.convert_ids_to_tokens(loaded(TEXT)["input_ids"]))
tokenizer(TEXT, padding="max_length", max_length=7)
print("saved after padding to 7:", saved("a b"))
tokenizer.truncation_side = "left"
tokenizer(TEXT, truncation=True, max_length=3)
tokenizer.truncation_side = "right"
tokenizer.save_pretrained("model")
side = AutoTokenizer.from_pretrained("model").truncation_side
print(f'cut on the left once, saved with truncation_side "{tokenizer.truncation_side}": loaded with "{side}"')
PYTHON

venv/bin/python save.py 2>/dev/null | tee found
diff seen found
