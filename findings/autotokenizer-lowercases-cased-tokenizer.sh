#!/usr/bin/env bash
# AutoTokenizer lower-cases a cased tokenizer.json of a BERT, unless tokenizer_config.json also says how it is cased.
#
# Seen with: transformers 5.23.0, tokenizers 0.23.3, CPython 3.11, Linux x86-64.
#
# tokenizer.json holds the whole tokenizer, and its normalizer says lowercase: false. AutoTokenizer takes BertTokenizer
# for a folder whose config.json has model_type bert, also where no tokenizer_class is given. That class builds the
# normalizer anew from its own default do_lower_case=True. Only a tokenizer_class that is generic, or do_lower_case in
# tokenizer_config.json, keeps the tokens of the file. Nothing is printed.
#
# Output seen:
#   tokenizer.json by itself: Paris spring
#   AutoTokenizer: paris spring
#   AutoTokenizer, tokenizer_class BertTokenizer: paris spring
#   AutoTokenizer, do_lower_case false: Paris spring
#   AutoTokenizer, tokenizer_class PreTrainedTokenizerFast: Paris spring
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3

cat > load.py <<'PYTHON'
import json
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

TEXT = "Paris spring"
words = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "paris", "Paris", "spring"]
cased = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
cased.normalizer = normalizers.BertNormalizer(lowercase=False)
cased.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
special = {f"{word.strip('[]').lower()}_token": word for word in words[:5]}

folder = Path("model")
folder.mkdir()
cased.save(str(folder / "tokenizer.json"))
(folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
print("tokenizer.json by itself:", *cased.encode(TEXT).tokens)
for what, more in (
    ("", {}),
    (", tokenizer_class BertTokenizer", {"tokenizer_class": "BertTokenizer"}),
    (", do_lower_case false", {"do_lower_case": False}),
    (", tokenizer_class PreTrainedTokenizerFast", {"tokenizer_class": "PreTrainedTokenizerFast"}),
):
    (folder / "tokenizer_config.json").write_text(json.dumps(special | more))
    print(f"AutoTokenizer{what}:", *AutoTokenizer.from_pretrained(str(folder)).tokenize(TEXT))
PYTHON

venv/bin/python load.py 2>/dev/null | tee found
diff seen found
