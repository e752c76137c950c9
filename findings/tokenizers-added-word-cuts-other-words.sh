#!/usr/bin/env bash
# A word that is added to a tokenizer is cut out of all other words that contain it.
#
# Seen with: transformers 5.23.0, tokenizers 0.23.3, CPython 3.11.
#
# add_tokens(["ai"]) looks for these letters anywhere in the text, before words are split: "said" becomes s, ai, d, and
# what was one token of the pretrained vocabulary is three, or unknown. With each short word of a field that is added,
# common words lose what the model knew of them. AddedToken("ai", single_word=True) is found as a word only.
#
# Output seen:
#   before: he said main a ##i
#   with ai: he s ai d [UNK] ai [UNK] ai
#   with ai, single_word=True: he said main ai
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3

cat > add.py <<'PYTHON'
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

TEXT = "he said main ai"
words = ["[UNK]", "he", "said", "main", "s", "d", "a", "##i"]


def tokens(*added):
    plain = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]")
    tokenizer.add_tokens(list(added))
    return " ".join(tokenizer.tokenize(TEXT))


print("before:", tokens())
print("with ai:", tokens("ai"))
print("with ai, single_word=True:", tokens(AddedToken("ai", single_word=True)))
PYTHON

venv/bin/python add.py 2>/dev/null | tee found
diff seen found
