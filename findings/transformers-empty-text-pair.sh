#!/usr/bin/env bash
# A tokenizer of transformers drops an empty second text, and its separator, when it is called for one pair; in a batch
# it keeps the separator.
#
# Seen with: transformers 5.23.0, tokenizers 0.23.3.
#
# A row whose second text is empty is encoded as one text if it is tokenized alone, as a pipeline does, and as a pair if
# it is tokenized in a batch, as training and evaluation do. The tokenizers package itself encodes a pair either way.
#
# Output seen:
#   tokenizers: [2, 4, 3, 3]; alone: [2, 4, 3]; in a batch: [2, 4, 3, 3]
#
# Fails if this line differs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet transformers==5.23.0 tokenizers==0.23.3
"$folder/venv/bin/python" - 2>/dev/null <<'END'
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

tokenizer = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "rain": 4}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
)
wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
pair = tokenizer.encode("rain", "").ids
alone = wrapped("rain", text_pair="")["input_ids"]
[batch] = wrapped(["rain"], text_pair=[""])["input_ids"]
print(f"tokenizers: {pair}; alone: {alone}; in a batch: {batch}")
sys.exit((pair, alone, batch) != ([2, 4, 3, 3], [2, 4, 3], [2, 4, 3, 3]))
END
