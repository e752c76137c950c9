#!/usr/bin/env bash
# ONNX Runtime computes with 256, 512 and 768 where an array that was read from a FITS file has 1, 2 and 3.
#
# Seen with: onnxruntime 1.32.0, onnx 1.23.2, astropy 8.0.2, faiss-cpu 1.15.1, pyarrow 26.0.1, numpy 2.4.6, CPython
# 3.11.
#
# FITS and netCDF 3 store numbers with the high byte first, and readers return such arrays as they are, with a dtype
# that says so (>i2, >f4). NumPy computes and prints them right. ONNX Runtime checks the type, not the order of bytes:
# whole numbers come out multiplied, floats as almost 0, and the model answers. faiss converts, and pyarrow raises. An
# array that NumPy has computed with is in the machine's order, so that a preprocessing step hides it.
#
# Output seen:
#   >i2, NumPy: [1 2 3], mean 2.0
#   >i2, ONNX Runtime: [256. 512. 768.], after astype: [1. 2. 3.]
#   >f4, NumPy: [1. 2. 3.], mean 2.0
#   >f4, ONNX Runtime: [4.6006e-41 8.9683e-44 2.3049e-41], after astype: [1. 2. 3.]
#   >f4, faiss: [1. 2. 3.]
#   >f4, pyarrow: Byte-swapped arrays not supported
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  onnxruntime==1.32.0 onnx==1.23.2 astropy==8.0.2 faiss-cpu==1.15.1 pyarrow==26.0.1 numpy==2.4.6

cat > endian.py <<'PYTHON'
import faiss
import numpy as np
import onnxruntime
import pyarrow as pa
from astropy.io import fits
from onnx import TensorProto, helper


def run(numbers: np.ndarray) -> np.ndarray:
    kind = helper.np_dtype_to_tensor_dtype(numbers.dtype.newbyteorder("="))
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)],
        "floats",
        [helper.make_tensor_value_info("x", kind, [None])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": numbers})[0]


for kind in ("int16", "float32"):
    fits.PrimaryHDU(np.array([1, 2, 3], kind)).writeto(f"{kind}.fits")
    read = fits.getdata(f"{kind}.fits")
    print(f"{read.dtype}, NumPy: {read}, mean {read.mean()}")
    print(f"{read.dtype}, ONNX Runtime: {run(read)}, after astype: {run(read.astype(kind))}")
index = faiss.IndexFlatL2(3)
index.add(read.reshape(1, 3))
print(f"{read.dtype}, faiss: {index.reconstruct(0)}")
try:
    pa.array(read)
except pa.ArrowNotImplementedError as error:
    print(f"{read.dtype}, pyarrow: {error}")
PYTHON

venv/bin/python endian.py | tee found
diff seen found
