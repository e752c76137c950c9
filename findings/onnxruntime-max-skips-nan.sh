#!/usr/bin/env bash
# ONNX Runtime's ReduceMax and ArgMax skip NaN, unless it comes first.
#
# Seen with: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPython 3.11, Linux x86-64.
#
# The same row gives NaN or a number, depending on where its NaN stands; NumPy and PyTorch give NaN and its index. So a
# check of a model's largest output for NaN passes, and a class is predicted for a row whose scores are broken. TopK
# with k=1 finds the NaN in every place.
#
# Output seen:
#   [1.0, nan, 3.0]: ReduceMax 3.0, ArgMax 2, TopK nan at 1; NumPy nan at 1
#   [nan, 1.0, 3.0]: ReduceMax nan, ArgMax 0, TopK nan at 0; NumPy nan at 0
#   [1.0, 3.0, nan]: ReduceMax 3.0, ArgMax 1, TopK nan at 2; NumPy nan at 2
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6

cat > largest.py <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
nodes = [
    helper.make_node("ReduceMax", ["x", "one"], ["largest"], keepdims=0),
    helper.make_node("ArgMax", ["x"], ["index"], axis=1, keepdims=0),
    helper.make_node("TopK", ["x", "one"], ["top", "top_index"]),
]
outputs = {"largest": (TensorProto.FLOAT, [1]), "index": (TensorProto.INT64, [1])}
outputs |= {"top": (TensorProto.FLOAT, [1, 1]), "top_index": (TensorProto.INT64, [1, 1])}
graph = helper.make_graph(
    nodes,
    "largest",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])],
    [helper.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
    [numpy_helper.from_array(np.array([1]), "one")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
onnx.checker.check_model(model)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
for row in ([1, np.nan, 3], [np.nan, 1, 3], [1, 3, np.nan]):
    x = np.array([row], np.float32)
    largest, index, top, place = (value.item() for value in session.run(list(outputs), {"x": x}))
    found = f"ReduceMax {largest}, ArgMax {index}, TopK {top} at {place}"
    print(f"{x[0].tolist()}: {found}; NumPy {x.max()} at {x.argmax()}")
PYTHON

venv/bin/python largest.py | tee found
diff seen found
