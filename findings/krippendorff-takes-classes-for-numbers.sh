#!/usr/bin/env bash
# krippendorff's alpha of classes depends on which class is number 1, as it takes them for points of a scale.
#
# Seen with: krippendorff 0.9.0, nltk 3.10.4, numpy 2.4.6, CPython 3.11.
#
# Agreement of annotators is mostly wanted for classes, which data sets hold as numbers. The default of
# level_of_measurement is "interval": to confuse classes 0 and 2 is four times as bad as 0 and 1. One and the same
# annotation gets another alpha when its classes are numbered otherwise, on either side of the usual limit of 0.8.
# Classes as texts raise an error. NLTK's alpha, and level_of_measurement="nominal", do not depend on the numbers.
#
# Output seen:
#   cat dog fox: alpha 0.73, nominal 0.86, NLTK 0.86
#   cat fox dog: alpha 0.93, nominal 0.86, NLTK 0.86
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check krippendorff==0.9.0 nltk==3.10.4 numpy==2.4.6

cat > agree.py <<'PYTHON'
import krippendorff
from nltk.metrics.agreement import AnnotationTask

FIRST = "cat cat dog dog fox fox cat dog fox cat".split()
SECOND = "cat cat dog dog fox fox fox dog fox cat".split()
for classes in (["cat", "dog", "fox"], ["cat", "fox", "dog"]):
    numbers = [[classes.index(name) for name in names] for names in (FIRST, SECOND)]
    task = AnnotationTask([(who, row, of[row]) for who, of in enumerate(numbers) for row in range(10)])
    nominal = krippendorff.alpha(numbers, level_of_measurement="nominal")
    print(f"{' '.join(classes)}: alpha {krippendorff.alpha(numbers):.2f}", end="")
    print(f", nominal {nominal:.2f}, NLTK {task.alpha():.2f}")
PYTHON

venv/bin/python agree.py | tee found
diff seen found
