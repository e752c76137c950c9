#!/usr/bin/env bash
# OpenVINO saves a number above 65504 as 65504: a model that was right before save_model is wrong once it is loaded.
#
# Seen with: openvino 2026.4.1, numpy 2.4.6, CPython 3.11.
#
# save_model writes all constants in 16 bits by default, those of a model's preprocessing, too: the means and scales of
# prices, populations and times. Larger ones are clamped; smaller ones keep three digits. If most numbers of a constant
# are too large, it stays as it is, so that a mean of two columns breaks and one of a single column does not. The model
# in memory, which is what one checks after the conversion, is not changed. compress_to_fp16=False writes all digits.
#
# Output seen:
#   row minus mean: 3.0 128.0
#   OpenVINO, before save_model: 3.0 128.0
#   OpenVINO, saved and loaded: 4.0 1699934592.0
#   saved with compress_to_fp16=False: 3.0 128.0
#   the second column alone, saved and loaded: 128.0
#   messages: none
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check openvino==2026.4.1 numpy==2.4.6

cat > save.py <<'PYTHON'
import warnings
from pathlib import Path

import numpy as np
import openvino
from openvino import opset15 as ops

warnings.simplefilter("error")
core = openvino.Core()
mean = np.array([[4097, 1_700_000_000]], dtype=np.float32)
row = np.array([[4100, 1_700_000_128]], dtype=np.float32)


def standardizer(mean):
    rows = ops.parameter([1, mean.shape[1]], np.float32)
    return openvino.Model([ops.subtract(rows, ops.constant(mean))], [rows], "standardizer")


def say(what, model, row=row):
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})  # some CPUs take fewer bits
    print(f"{what}:", *compiled(row)[0][0].tolist())


print("row minus mean:", *(row - mean)[0].tolist())
model = standardizer(mean)
say("OpenVINO, before save_model", model)
openvino.save_model(model, "half.xml")
say("OpenVINO, saved and loaded", "half.xml")
openvino.save_model(model, "whole.xml", compress_to_fp16=False)
say("saved with compress_to_fp16=False", "whole.xml")
openvino.save_model(standardizer(mean[:, 1:]), "column.xml")
say("the second column alone, saved and loaded", "column.xml", row[:, 1:])
print("messages:", Path("messages").read_text().strip() or "none")
PYTHON

venv/bin/python save.py 2> messages | tee found
diff seen found
