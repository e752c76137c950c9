#!/usr/bin/env bash
# ONNX Runtime's quantizer writes models of stacked matrices that ONNX Runtime then refuses to compute.
#
# Seen with: onnxruntime 1.32.0, onnx 1.23.2, CPython 3.11.
#
# A MatMul whose weights have three axes multiplies each group of rows with a matrix of its own, as ensembles of networks
# and mixtures of experts do. quantize_dynamic takes such weights with per_channel=True, which is recommended for
# accuracy, and returns without a word. The session of the written model loads too; the first run fails, because the
# kernel takes zero points by column for a single matrix only. With per_channel=False the same weights are computed.
#
# Output seen:
#   per_channel=False: computed
#   per_channel=True: Fail: MatmulInteger : b zero point is not valid
#
# Fails if the model that was quantized by channel can be computed, or the other one can not.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2

cat > "$folder/quantize.py" <<'PYTHON'
import logging
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

logging.disable()
onnxruntime.set_default_logger_severity(4)
MEMBERS, INPUTS, OUTPUTS = 4, 16, 8
weights = np.random.default_rng(0).normal(size=(MEMBERS, INPUTS, OUTPUTS)).astype(np.float32)
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "weights"], ["y"])],
    "members",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [MEMBERS, "rows", INPUTS])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [MEMBERS, "rows", OUTPUTS])],
    [numpy_helper.from_array(weights, "weights")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 10
onnx.checker.check_model(model)
onnx.save(model, "model.onnx")
x = np.random.default_rng(1).normal(size=(MEMBERS, 3, INPUTS)).astype(np.float32)


def outcome(per_channel: bool) -> str:
    quantize_dynamic("model.onnx", "quantized.onnx", weight_type=QuantType.QInt8, per_channel=per_channel)
    session = onnxruntime.InferenceSession("quantized.onnx", providers=["CPUExecutionProvider"])
    try:
        (y,) = session.run(None, {"x": x})
    except Exception as error:
        return f"{type(error).__name__}: {str(error).rpartition('was false. ')[2]}"
    return "computed" if np.abs(y - x @ weights).max() < 0.5 else "wrong"


found = {per_channel: outcome(per_channel) for per_channel in (False, True)}
for per_channel, text in found.items():
    print(f"per_channel={per_channel}: {text}")
sys.exit(found[False] != "computed" or not found[True].startswith("Fail"))
PYTHON

cd "$folder"
"$folder/venv/bin/python" "$folder/quantize.py"
