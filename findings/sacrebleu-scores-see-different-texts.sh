#!/usr/bin/env bash
# sacrebleu's TER calls a text in the wrong case perfect, and its chrF one without blanks; BLEU gives 0 to both.
#
# Seen with: sacrebleu 2.6.0, CPython 3.11.
#
# Each score prepares texts in its own way: TER lower-cases them, chrF takes blanks out before it counts pieces of
# words, BLEU does neither. A model that forgets capitals, or runs words together, loses nothing by one score and
# everything by the other, and a selection of checkpoints by chrF does not see blanks at all. case_sensitive=True, and
# word_order=2 (chrF++), see them.
#
# Output seen:
#   The cat sat on the mat in Rome: BLEU 100, chrF 100, chrF++ 100, TER 0, TER, case_sensitive 0
#   THE CAT SAT ON THE MAT IN ROME: BLEU 0, chrF 1, chrF++ 1, TER 0, TER, case_sensitive 100
#   ThecatsatonthematinRome: BLEU 0, chrF 100, chrF++ 86, TER 100, TER, case_sensitive 100
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check sacrebleu==2.6.0

cat > scores.py <<'PYTHON'
from sacrebleu.metrics import BLEU, CHRF, TER

REFERENCE = "The cat sat on the mat in Rome"
scores = {
    "BLEU": BLEU(effective_order=True),
    "chrF": CHRF(),
    "chrF++": CHRF(word_order=2),
    "TER": TER(),
    "TER, case_sensitive": TER(case_sensitive=True),
}
for text in (REFERENCE, REFERENCE.upper(), REFERENCE.replace(" ", "")):
    found = (f"{name} {score.sentence_score(text, [REFERENCE]).score:.0f}" for name, score in scores.items())
    print(f"{text}:", ", ".join(found))
PYTHON

venv/bin/python scores.py | tee found
diff seen found
