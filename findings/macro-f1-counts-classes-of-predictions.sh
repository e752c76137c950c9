#!/usr/bin/env bash
# One prediction of a class that the test rows do not have lowers scikit-learn's macro F1 by a third, without a warning.
#
# Seen with: scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# The mean goes over all classes that occur as labels or as predictions. A class that is predicted once and never true
# has an F1 of 0, and counts as much as one with half of the rows: with 100 rows, one wrong answer costs 1% if it names
# another class of the test, and 33% if it names a third. Scores of small or of several test sets, and of parts of one,
# cannot be compared. labels= fixes the classes; balanced_accuracy_score, a mean over classes as well, counts true ones.
#
# Output seen:
#   one wrong answer, a class of the test: macro F1 0.990, balanced accuracy 0.990
#   one wrong answer, a class of training only: macro F1 0.663, balanced accuracy 0.990
#   the same with labels= of the test: macro F1 0.995
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  scikit-learn==1.9.1 numpy==2.4.6

cat > classes.py <<'PYTHON'
import warnings

from sklearn.metrics import balanced_accuracy_score, f1_score

labels = ["ham"] * 50 + ["spam"] * 50
for what, answer in (("a class of the test", "spam"), ("a class of training only", "news")):
    answers = [answer, *labels[1:]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        macro = f1_score(labels, answers, average="macro")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        balanced = balanced_accuracy_score(labels, answers)
    print(f"one wrong answer, {what}: macro F1 {macro:.3f}, balanced accuracy {balanced:.3f}")
of_test = f1_score(labels, answers, average="macro", labels=["ham", "spam"])
print(f"the same with labels= of the test: macro F1 {of_test:.3f}")
PYTHON

venv/bin/python classes.py | tee found
diff seen found
