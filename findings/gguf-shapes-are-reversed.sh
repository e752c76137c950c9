#!/usr/bin/env bash
# A tensor's shape in the reader of gguf is the reverse of its data's shape, and a reshape to it mixes up the numbers.
#
# Seen with: gguf 0.19.0, numpy 2.4.6, CPython 3.11.
#
# The file names the fastest dimension first, and GGUFReader hands that on as tensor.shape, next to tensor.data, which
# has rows and columns as NumPy does. Of a square matrix, nothing shows. Of another, data.reshape(shape) succeeds, and
# is no transpose: rows are cut at wrong places. A vocabulary's size read from shape[0] of the embeddings is the width.
#
# Output seen:
#   written: [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
#   tensor.shape: 3 2, tensor.data.shape: 2 3
#   data.reshape(shape): [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check gguf==0.19.0 numpy==2.4.6

cat > shape.py <<'PYTHON'
import gguf
import numpy as np

writer = gguf.GGUFWriter("model.gguf", "llama")
matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
writer.add_tensor("matrix", matrix)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

(tensor,) = gguf.GGUFReader("model.gguf").tensors
print("written:", matrix.tolist())
print("tensor.shape:", *tensor.shape, end=", ")
print("tensor.data.shape:", *tensor.data.shape)
print("data.reshape(shape):", tensor.data.reshape(tensor.shape).tolist())
PYTHON

venv/bin/python shape.py 2>/dev/null | tee found
diff seen found
