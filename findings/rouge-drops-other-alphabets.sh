#!/usr/bin/env bash
# rouge-score gives 0 to a text that equals its reference, if it is not written in Latin letters.
#
# Seen with: rouge-score 0.1.2, CPython 3.11.
#
# The tokenizer that RougeScorer takes by itself keeps only a to z and digits, and makes a break of everything else.
# Russian, Chinese, Arabic or Hindi texts have no token left, and every model gets 0, as an average over languages does
# not show. Accents split words: "naïve" and "naive" share "na", and differ otherwise. tokenizer= takes another one.
#
# Output seen:
#   'the weather is fine' and the same: 1.00, by another tokenizer 1.00
#   'погода сегодня хорошая' and the same: 0.00, by another tokenizer 1.00
#   'आज मौसम अच्छा है' and the same: 0.00, by another tokenizer 1.00
#   'naïve' and 'na ve': 1.00
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rouge-score==0.1.2

cat > score.py <<'PYTHON'
from rouge_score.rouge_scorer import RougeScorer


def score(target, prediction, **options):
    return f"{RougeScorer(['rougeL'], **options).score(target, prediction)['rougeL'].fmeasure:.2f}"


class Words:
    def tokenize(self, text):
        return text.lower().split()


for text in ("the weather is fine", "погода сегодня хорошая", "आज मौसम अच्छा है"):
    print(f"{text!r} and the same: {score(text, text)}, by another tokenizer {score(text, text, tokenizer=Words())}")
print("'naïve' and 'na ve':", score("naïve", "na ve"))
PYTHON

venv/bin/python score.py | tee found
diff seen found
