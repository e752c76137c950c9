#!/usr/bin/env bash
# scikit-optimize takes a list of two numbers for the ends of a range, and a list of three for three values.
#
# Seen with: scikit-optimize 0.10.2, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# BayesSearchCV stands in for GridSearchCV and RandomizedSearchCV, whose lists are values to try. It reads [16, 64] as
# every integer from 16 to 64. With one value more the same list is a choice, and [True, False] or two texts always are.
# Where only some numbers work, as sizes that must be powers of two or numbers of groups that must divide, the search
# tries all others. Categorical([16, 64]) is the choice.
#
# Output seen:
#   [16, 64] GridSearchCV tries 16 64, BayesSearchCV 23 27 28 41 56 62
#   [16, 32, 64] GridSearchCV tries 16 32 64, BayesSearchCV 16 32 64
#   [0.0, 0.1] GridSearchCV tries 0 0.1, BayesSearchCV 0.0147 0.0233 0.0258 0.051 0.0529 0.0531 0.0838 0.0967
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check scikit-optimize==0.10.2 scikit-learn==1.9.1 numpy==2.4.6

cat > ranges.py <<'PYTHON'
import warnings

from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier
from skopt import BayesSearchCV

warnings.simplefilter("ignore")
rows, labels = load_wine(return_X_y=True)
for values in ([16, 64], [16, 32, 64], [0.0, 0.1]):
    name = "ccp_alpha" if isinstance(values[0], float) else "max_leaf_nodes"
    grid = GridSearchCV(DecisionTreeClassifier(), {name: values}, cv=2).fit(rows, labels)
    bayes = BayesSearchCV(DecisionTreeClassifier(), {name: values}, n_iter=8, cv=2, random_state=0).fit(rows, labels)
    tried = [sorted(set(search.cv_results_[f"param_{name}"])) for search in (grid, bayes)]
    print(values, "GridSearchCV tries", *(f"{value:.3g}" for value in tried[0]), end=", ")
    print("BayesSearchCV", *(f"{value:.3g}" for value in tried[1]))
PYTHON

venv/bin/python ranges.py | tee found
diff seen found
