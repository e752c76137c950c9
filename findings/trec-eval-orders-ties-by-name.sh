#!/usr/bin/env bash
# trec_eval orders documents of one score by the letters of their ids, and so does not score the order that was given.
#
# Seen with: pytrec-eval-terrier 0.5.11, numpy 2.4.6, CPython 3.11.
#
# A run has a rank and a score for each document, and trec_eval takes no notice of the rank: it sorts by score, and
# equal ones by id, the last of the alphabet first. Scores tie often, as those of BM25 on short texts, of rounded or
# quantized vectors, or where all are 1. The same answers get a precision of 1 or 0 depending on how documents are
# named, and ids that grow with time favor new ones. Scores that fall with the rank avoid it.
#
# Output seen:
#   the right one is "a", all scores 1: P@1 0.00, MRR 0.33
#   the right one is "c", all scores 1: P@1 1.00, MRR 1.00
#   the right one is "a", scores by rank: P@1 1.00, MRR 1.00
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  pytrec-eval-terrier==0.5.11 numpy==2.4.6

cat > ties.py <<'PYTHON'
import pytrec_eval

for right, scores, what in (
    ("a", {"a": 1.0, "b": 1.0, "c": 1.0}, "all scores 1"),
    ("c", {"c": 1.0, "b": 1.0, "a": 1.0}, "all scores 1"),
    ("a", {"a": 3.0, "b": 2.0, "c": 1.0}, "scores by rank"),
):
    evaluator = pytrec_eval.RelevanceEvaluator({"query": {right: 1}}, {"P_1", "recip_rank"})
    found = evaluator.evaluate({"query": scores})["query"]
    print(f'the right one is "{right}", {what}: P@1 {found["P_1"]:.2f}, MRR {found["recip_rank"]:.2f}')
PYTHON

venv/bin/python ties.py | tee found
diff seen found
