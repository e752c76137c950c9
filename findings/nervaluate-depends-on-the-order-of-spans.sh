#!/usr/bin/env bash
# nervaluate does not count a span that is exactly right, if a prediction that overlaps it comes first in the list.
#
# Seen with: nervaluate 1.2.1, CPython 3.11.
#
# Each predicted span is compared with the true ones in the order of the lists, and the first that overlaps a true span
# uses it up; a later one that equals it is spurious. So the strict score of the same set of spans depends on their
# order. Sorting them by their start does not help: the span that overlaps may begin earlier.
#
# Output seen:
#   exact span first: strict F1 0.667, correct 1, incorrect 0, spurious 1
#   exact span last: strict F1 0.000, correct 0, incorrect 1, spurious 1
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check nervaluate==1.2.1

cat > score.py <<'PYTHON'
from nervaluate import Evaluator

exact, other = {"label": "ORG", "start": 5, "end": 9}, {"label": "ORG", "start": 2, "end": 6}
for what, predicted in (("first", [exact, other]), ("last", [other, exact])):
    strict = Evaluator([[exact]], [predicted], tags=["ORG"], loader="dict").evaluate()["overall"]["strict"]
    counts = f"correct {strict.correct}, incorrect {strict.incorrect}, spurious {strict.spurious}"
    print(f"exact span {what}: strict F1 {strict.f1:.3f}, {counts}")
PYTHON

venv/bin/python score.py | tee found
diff seen found
