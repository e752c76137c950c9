#!/usr/bin/env bash
# In ONNX, a category that the model does not know becomes the last one that it knows.
#
# Seen with: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPython 3.11.
#
# LabelEncoder numbers texts, and gives -1 for one that it does not list. OneHot and Gather, the lookup of an embedding,
# count a negative index from the end. Each does as the standard says; one after the other, they treat an unseen value
# as the last category, without an error. An index that is too large gives only zeros in OneHot. Here as in the
# standard's own reference implementation.
#
# Output seen:
#   numbers of a, b, c, unseen: [0, 1, 2, -1]
#   OneHot of c: [0.0, 0.0, 1.0], of the unseen one: [0.0, 0.0, 1.0]
#   embedding of c: 30.0, of the unseen one: 30.0
#   reference implementation: the same
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6

cat > encode.py <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

known = {"keys_strings": ["a", "b", "c"], "values_int64s": [0, 1, 2]}
nodes = [
    helper.make_node("LabelEncoder", ["text"], ["number"], domain="ai.onnx.ml", **known),
    helper.make_node("OneHot", ["number", "depth", "off_on"], ["one_hot"]),
    helper.make_node("Gather", ["table", "number"], ["embedding"]),
]
constants = {
    "depth": np.array(3),
    "off_on": np.array([0, 1], np.float32),
    "table": np.array([10, 20, 30], np.float32),
}
outputs = {
    "number": (TensorProto.INT64, [4]),
    "one_hot": (TensorProto.FLOAT, [4, 3]),
    "embedding": (TensorProto.FLOAT, [4]),
}
graph = helper.make_graph(
    nodes,
    "encode",
    [helper.make_tensor_value_info("text", TensorProto.STRING, [4])],
    [helper.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
    [numpy_helper.from_array(value, name) for name, value in constants.items()],
)
opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
onnx.checker.check_model(model)
rows = {"text": np.array(["a", "b", "c", "unseen"], object)}
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
found = session.run(list(outputs), rows)
numbers, one_hot, embedding = (value.tolist() for value in found)
print("numbers of a, b, c, unseen:", numbers)
print(f"OneHot of c: {one_hot[2]}, of the unseen one: {one_hot[3]}")
print(f"embedding of c: {embedding[2]}, of the unseen one: {embedding[3]}")
reference = ReferenceEvaluator(model).run(list(outputs), rows)
is_equal = all(map(np.array_equal, found, reference))
print("reference implementation:", "the same" if is_equal else "another result")
PYTHON

venv/bin/python encode.py | tee found
diff seen found
