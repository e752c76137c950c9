#!/usr/bin/env bash
# mlxtend's StackingClassifier trusts the model that overfits most; scikit-learn's class of the same name does not.
#
# Seen with: mlxtend 0.25.0, scikit-learn 1.9.1, pandas 3.0.6, numpy 2.4.6, CPython 3.11.
#
# A stack learns how far to trust each model from their predictions. scikit-learn predicts rows by models that were
# trained without them (cross-validation); mlxtend takes predictions for the very rows that the models were trained on.
# A full tree is always right there, and so gets all the weight, and the stack is as bad as the tree, and far surer.
# mlxtend's StackingCVClassifier is what scikit-learn calls StackingClassifier.
#
# Output seen:
#   the tree: test accuracy 0.64, log loss 12.98
#   the linear model: test accuracy 0.70, log loss 0.59
#   scikit-learn's StackingClassifier: test accuracy 0.71, log loss 0.58
#   mlxtend's StackingClassifier: test accuracy 0.64, log loss 1.65
#   mlxtend's StackingCVClassifier: test accuracy 0.71, log loss 0.58
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mlxtend==0.25.0 scikit-learn==1.9.1 pandas==3.0.6 numpy==2.4.6

cat > stack.py <<'PYTHON'
from mlxtend.classifier import StackingClassifier as MlxtendStacking
from mlxtend.classifier import StackingCVClassifier
from sklearn.datasets import make_classification
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

rows, labels = make_classification(2000, 20, n_informative=5, flip_y=0.3, random_state=0)
tree, linear, last = DecisionTreeClassifier(random_state=0), LogisticRegression(), LogisticRegression()
for what, model in {
    "the tree": tree,
    "the linear model": linear,
    "scikit-learn's StackingClassifier": StackingClassifier([("tree", tree), ("linear", linear)], last),
    "mlxtend's StackingClassifier": MlxtendStacking([tree, linear], last, use_probas=True),
    "mlxtend's StackingCVClassifier": StackingCVClassifier([tree, linear], last, use_probas=True, random_state=0),
}.items():
    model.fit(rows[:1000], labels[:1000])
    loss = log_loss(labels[1000:], model.predict_proba(rows[1000:]))
    print(f"{what}: test accuracy {model.score(rows[1000:], labels[1000:]):.2f}, log loss {loss:.2f}")
PYTHON

venv/bin/python stack.py | tee found
diff seen found
