#!/usr/bin/env bash
# The best parameters that hyperopt's fmin returns hold the position of a choice, and a batch size of 2 for 64.
#
# Seen with: hyperopt 0.3.0, numpy 2.4.6, CPython 3.11.
#
# The objective gets the values, fmin returns the positions in the lists of hp.choice, under the same names and in a
# dict that looks alike. Where values are numbers, a model is trained with the position as batch size, layers or depth,
# and nothing fails; for True and False they are the other way round if True comes first. hp.quniform returns the value,
# and a float. space_eval turns what fmin returned into what the objective saw.
#
# Output seen:
#   fmin: {'batch_size': 2, 'bias': 0, 'layers': 4.0}
#   space_eval: {'batch_size': 64, 'bias': True, 'layers': 4.0}
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check hyperopt==0.3.0 numpy==2.4.6

cat > best.py <<'PYTHON'
import numpy as np
from hyperopt import fmin, hp, space_eval, tpe

SPACE = {
    "batch_size": hp.choice("batch_size", [16, 32, 64]),
    "bias": hp.choice("bias", [True, False]),
    "layers": hp.quniform("layers", 1, 4, 1),
}


def loss(parameters: dict) -> float:
    return -parameters["batch_size"] - parameters["bias"] - parameters["layers"]


best = fmin(loss, SPACE, tpe.suggest, 200, rstate=np.random.default_rng(0), verbose=False, show_progressbar=False)
print("fmin:", {name: value.item() if hasattr(value, "item") else value for name, value in best.items()})
print("space_eval:", space_eval(SPACE, best))
PYTHON

venv/bin/python best.py | tee found
diff seen found
