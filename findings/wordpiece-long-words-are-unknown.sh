#!/usr/bin/env bash
# WordPiece makes one unknown token of every word of more than 100 characters, though it knows all its pieces.
#
# Seen with: tokenizers 0.23.3, CPython 3.11.
#
# max_input_chars_per_word is 100 and is written to tokenizer.json. A word is what stands between blanks and
# punctuation: a sequence of DNA or protein, a hash, and a sentence in Thai, Lao or Khmer, which have no blanks, become
# [UNK] as a whole. All such rows look alike to the model, and one character more or less decides.
#
# Output seen:
#   DNA, 100 characters: 50 tokens, the last ##AC
#   DNA, 101 characters: 1 tokens, the last [UNK]
#   Thai, 120 characters: 1 tokens, the last [UNK]
#   max_input_chars_per_word=1000, 101 characters: 51 tokens, the last ##G
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tokenizers==0.23.3

cat > long.py <<'PYTHON'
from tokenizers import Tokenizer, models, pre_tokenizers

pieces = {piece: number for number, piece in enumerate(["[UNK]", "AC", "##AC", "##G", "วัน", "##วัน"])}


def tokens(text, **options):
    tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]", **options))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found = tokenizer.encode(text).tokens
    return f"{len(text)} characters: {len(found)} tokens, the last {found[-1]}"


print("DNA,", tokens("AC" * 50))
print("DNA,", tokens("AC" * 50 + "G"))
print("Thai,", tokens("วัน" * 40))
print("max_input_chars_per_word=1000,", tokens("AC" * 50 + "G", max_input_chars_per_word=1000))
PYTHON

venv/bin/python long.py | tee found
diff seen found
