#!/usr/bin/env bash
# A byte-level tokenizer reads words of a list without the blank between them, as parts of one word.
#
# Seen with: transformers 5.23.0, tokenizers 0.23.3, CPython 3.11.
#
# Data of token classification is lists of words, and is_split_into_words=True takes them. Byte-level tokenizers, as of
# ModernBERT and most decoders, mark a word by the blank before it; a list has none, so each word becomes the pieces
# that otherwise occur within words. GPT-2's and RoBERTa's own classes raise; the generic one, which newer models have,
# does not. The model is trained on other tokens than it gets for texts. add_prefix_space=True in the file is the
# remedy.
#
# Output seen:
#   add_prefix_space=False: words in on in, text in Ġon Ġin
#   add_prefix_space=True: words Ġin Ġon Ġin, text Ġin Ġon Ġin
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3

cat > words.py <<'PYTHON'
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

letters = ["[UNK]", *sorted(pre_tokenizers.ByteLevel.alphabet()), "in", "Ġin", "on", "Ġon"]
merges = [("i", "n"), ("Ġ", "in"), ("o", "n"), ("Ġ", "on")]


def show(add_prefix_space):
    plain = Tokenizer(models.BPE({piece: number for number, piece in enumerate(letters)}, merges, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]")
    words = tokenizer(["in", "on", "in"], is_split_into_words=True)
    text = tokenizer("in on in")
    as_tokens = [" ".join(tokenizer.convert_ids_to_tokens(each["input_ids"])) for each in (words, text)]
    print(f"add_prefix_space={add_prefix_space}: words {as_tokens[0]}, text {as_tokens[1]}")


show(False)
show(True)
PYTHON

venv/bin/python words.py 2>/dev/null | tee found
diff seen found
