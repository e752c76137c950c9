#!/usr/bin/env bash
# skl2onnx leaves out the columns of SimpleImputer(add_indicator=True), and a linear model after it predicts otherwise.
#
# Seen with: skl2onnx 1.20.0, onnxruntime 1.32.0, scikit-learn 1.9.1, onnx 1.23.2, numpy 2.4.6, CPython 3.11.
#
# add_indicator adds a column for each one that has missing values, since that a value is missing may tell much. The
# graph fills the gaps and has no such columns. Its linear classifier, which was fitted on six, takes the three without
# an error or a warning, and gives other classes. Trees raise an error at the first prediction.
#
# Output seen:
#   columns: scikit-learn 6, the graph 3
#   add_indicator=False: accuracy of scikit-learn 0.68, of the graph 0.68
#   add_indicator=True: accuracy of scikit-learn 1.00, of the graph 0.60
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  skl2onnx==1.20.0 onnxruntime==1.32.0 scikit-learn==1.9.1 onnx==1.23.2 numpy==2.4.6

cat > missing.py <<'PYTHON'
import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

onnxruntime.set_default_logger_severity(4)
random = np.random.default_rng(0)
rows = random.normal(size=(1000, 3)).astype(np.float32)
rows[random.random((1000, 3)) < 0.3] = np.nan
labels = np.isnan(rows[:, 1]).astype(int)


def run(model) -> list[np.ndarray]:
    graph = to_onnx(model, rows[:1])
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": rows})


imputer = SimpleImputer(add_indicator=True).fit(rows)
print(f"columns: scikit-learn {imputer.transform(rows).shape[1]}, the graph {run(imputer)[0].shape[1]}")
for add in (False, True):
    model = make_pipeline(SimpleImputer(add_indicator=add), LogisticRegression()).fit(rows, labels)
    of_graph = (run(model)[0] == labels).mean()
    print(f"add_indicator={add}: accuracy of scikit-learn {model.score(rows, labels):.2f}, of the graph {of_graph:.2f}")
PYTHON

venv/bin/python missing.py | tee found
diff seen found
