#!/usr/bin/env bash
# implicit recommends what a user has already, after it was asked to leave that out, to users who have much.
#
# Seen with: implicit 0.7.3, scipy 1.17.1, numpy 2.4.6, CPython 3.11.
#
# recommend leaves out what a user likes (filter_already_liked_items), and always returns N items. Where fewer are left,
# it fills up with items that were left out, marked by nothing but a score of -3.4e38; from the recommenders by nearest
# neighbors it is 0, which others may have, too. The most active users get wrong items, and a metric that takes the ids
# counts them as errors, or as hits. So does filter_items.
#
# Output seen:
#   AlternatingLeastSquares, 4 items for a user who has [0 1 2]: 4 (0.19), 3 (-0.098), 2 (-3.4e+38), 1 (-3.4e+38)
#   CosineRecommender, 4 items for a user who has [0 1 2]: 4 (1), 3 (0.71), 2 (0), 1 (0)
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check implicit==0.7.3 scipy==1.17.1 numpy==2.4.6

cat > shop.py <<'PYTHON'
import numpy as np
from implicit.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender
from scipy.sparse import csr_matrix

bought = csr_matrix(np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 1], [0, 1, 0, 1, 1]], np.float32))
for model in (AlternatingLeastSquares(factors=2, random_state=0), CosineRecommender()):
    model.fit(bought, show_progress=False)
    items, scores = model.recommend(0, bought[0], N=4, filter_already_liked_items=True)
    found = (f"{item} ({score:.2g})" for item, score in zip(items, scores, strict=True))
    print(f"{type(model).__name__}, 4 items for a user who has {bought[0].indices}:", ", ".join(found))
PYTHON

venv/bin/python shop.py 2>/dev/null | tee found
diff seen found
