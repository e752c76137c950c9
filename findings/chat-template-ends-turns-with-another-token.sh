#!/usr/bin/env bash
# A chat template may end turns with a token other than eos_token; generate() stops at the eos_token_id of config.json only.
#
# Seen with: transformers 5.23.0, tokenizers 0.23.3, CPython 3.11, Linux x86-64.
#
# Base models of the Qwen2.5 kind have eos_token <|endoftext|> and a template that ends each turn with <|im_end|>. Their
# eos_token_id, in the generation config that transformers derives from config.json, is that of <|endoftext|>. A model
# that is fine-tuned on conversations never sees this token after an answer, so generate() does not stop at the end of
# the answer: it writes the next turns, too. Nothing is printed. A new tokenizer.eos_token does not help: config.json and
# the generation config keep the old one, and a template that spells out its token renders the same as before. The token
# must be in eos_token_id of generation_config.json, which takes a list.
#
# Output seen:
#   the answer's turn ends with: <|im_end|>
#   tokenizer.eos_token: <|endoftext|>
#   generate() stops at: <|endoftext|>
#   eos_token in the rendered conversation: False
#   after tokenizer.eos_token = "<|im_end|>", saved and loaded again:
#   tokenizer.eos_token: <|im_end|>
#   generate() stops at: <|endoftext|>
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3 jinja2==3.1.6

cat > ends.py <<'PYTHON'
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoTokenizer, GenerationConfig, LlamaConfig, PreTrainedTokenizerFast

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHAT = [{"role": "user", "content": "Is it so?"}, {"role": "assistant", "content": "Yes."}]

words = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
plain = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, []))
plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
special = {"eos_token": "<|endoftext|>", "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, chat_template=TEMPLATE, **special)
LlamaConfig(vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id).save_pretrained("model")
tokenizer.save_pretrained("model")


def stops():
    """What generate() takes where the folder has no generation_config.json, and save_pretrained of a model writes."""
    config = GenerationConfig.from_model_config(AutoConfig.from_pretrained("model"))
    return tokenizer.convert_ids_to_tokens(config.eos_token_id)


tokenizer = AutoTokenizer.from_pretrained("model")
whole = tokenizer.apply_chat_template(CHAT, return_dict=True)["input_ids"]
turns = [token for token in whole if token in tokenizer.all_special_ids]
print("the answer's turn ends with:", tokenizer.convert_ids_to_tokens(turns[-1]))
print("tokenizer.eos_token:", tokenizer.eos_token)
print("generate() stops at:", stops())
print("eos_token in the rendered conversation:", tokenizer.eos_token_id in whole)

print('after tokenizer.eos_token = "<|im_end|>", saved and loaded again:')
tokenizer.eos_token = "<|im_end|>"
tokenizer.save_pretrained("model")
tokenizer = AutoTokenizer.from_pretrained("model")
print("tokenizer.eos_token:", tokenizer.eos_token)
print("generate() stops at:", stops())
PYTHON

venv/bin/python ends.py 2>/dev/null | tee found
diff seen found
