#!/usr/bin/env bash
# pycocotools counts a box as not found if the number of its annotation is 0.
#
# Seen with: pycocotools 2.0.11, numpy 2.4.6, CPython 3.11.
#
# COCO's format asks for ids of annotations and does not say where they begin; scripts that number them by enumerate
# begin at 0. COCOeval notes for each detection the id of its annotation, where 0 also stands for none. So the detection
# of annotation 0, exact as it may be, is a false positive, and its box a missed one. In a set of few images the average
# precision falls by far; in a large one it is only a little wrong. Nothing is printed but the scores.
#
# Output seen:
#   all boxes exact, ids from 1: AP 1.000
#   all boxes exact, ids from 0: AP 0.442
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pycocotools==2.0.11 numpy==2.4.6

cat > score.py <<'PYTHON'
import contextlib
import io

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

BOXES = [[10, 10, 20, 20], [40, 10, 20, 20], [70, 10, 20, 20]]


def average_precision(first):
    truth = COCO()
    truth.dataset = {
        "images": [{"id": 1, "width": 100, "height": 40}],
        "categories": [{"id": 1, "name": "cell"}],
        "annotations": [
            {"id": first + number, "image_id": 1, "category_id": 1, "bbox": box, "area": 400, "iscrowd": 0}
            for number, box in enumerate(BOXES)
        ],
    }
    truth.createIndex()
    found = truth.loadRes([{"image_id": 1, "category_id": 1, "bbox": box, "score": 0.9} for box in BOXES])
    scores = COCOeval(truth, found, "bbox")
    scores.evaluate()
    scores.accumulate()
    scores.summarize()
    return scores.stats[0]


for first in (1, 0):
    with contextlib.redirect_stdout(io.StringIO()):
        score = average_precision(first)
    print(f"all boxes exact, ids from {first}: AP {score:.3f}")
PYTHON

venv/bin/python score.py | tee found
diff seen found
