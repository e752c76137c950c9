#!/usr/bin/env bash
# The average precision of exact detections is 0.5 if an image has 200 objects, for pycocotools and supervision.
#
# Seen with: pycocotools 2.0.11, supervision 0.31.2, numpy 2.4.6, CPython 3.11.
#
# COCO's evaluation takes the 100 best detections of each class and image, and counts the other objects as missed. In
# its own images there are hardly more; in those of cells, crops, crowds or from above there are, and the score then
# measures how many objects there are, as no model can have more than 100 of them right. In pycocotools params.maxDets
# raises the limit.
#
# Output seen:
#   100 objects, all found: pycocotools AP 1.00, AR 1.00, supervision AP 1.00, pycocotools with maxDets 1000 AP 1.00
#   200 objects, all found: pycocotools AP 0.50, AR 0.50, supervision AP 0.50, pycocotools with maxDets 1000 AP 1.00
#   400 objects, all found: pycocotools AP 0.26, AR 0.25, supervision AP 0.26, pycocotools with maxDets 1000 AP 1.00
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pycocotools==2.0.11 supervision==0.31.2 numpy==2.4.6

cat > many.py <<'PYTHON'
import contextlib
import io

import numpy as np
import supervision
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from supervision.metrics import MeanAveragePrecision

for count in (100, 200, 400):
    boxes = np.array([[20 * (number % 20), 20 * (number // 20), 10, 10] for number in range(count)], float)
    truth = COCO()
    truth.dataset = {
        "images": [{"id": 1, "width": 400, "height": 400}],
        "categories": [{"id": 1, "name": "cell"}],
        "annotations": [
            {"id": number + 1, "image_id": 1, "category_id": 1, "bbox": box.tolist(), "area": 100, "iscrowd": 0}
            for number, box in enumerate(boxes)
        ],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        found = truth.loadRes([{"image_id": 1, "category_id": 1, "bbox": box.tolist(), "score": 0.9} for box in boxes])
        coco = COCOeval(truth, found, "bbox")
        coco.evaluate()
        coco.accumulate()
        coco.summarize()
        more = COCOeval(truth, found, "bbox")
        more.params.maxDets = [1, 10, 1000]
        more.evaluate()
        more.accumulate()
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    kind = np.zeros(count, int)
    average = MeanAveragePrecision().update(
        [supervision.Detections(xyxy=corners, class_id=kind, confidence=np.full(count, 0.9))],
        [supervision.Detections(xyxy=corners, class_id=kind)],
    )
    print(f"{count} objects, all found: pycocotools AP {coco.stats[0]:.2f}, AR {coco.stats[8]:.2f}", end="")
    precision = more.eval["precision"][:, :, 0, 0, -1].mean()
    print(f", supervision AP {average.compute().map50_95:.2f}, pycocotools with maxDets 1000 AP {precision:.2f}")
PYTHON

venv/bin/python many.py 2>/dev/null | tee found
diff seen found
