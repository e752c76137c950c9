#!/usr/bin/env bash
# JAX makes 5 of the id 4294967301, and takes the last row where an index is too large: wrong vectors, no error.
#
# Seen with: jax 0.10.2, optax 0.2.8, numpy 2.4.6, CPython 3.11.
#
# Arrays of 64 bits become 32 bits unless jax_enable_x64 is set. Integers are cut to their low bits: hashes and ids of
# users meet in one row of a table. An index beyond the end is that of the last row, and dynamic_slice moves a window
# that sticks out back into the array, so that the end of a text comes with its neighbor's label. A label of -1 is the
# last class for optax's loss, as in Python; -100, by which others leave tokens out, makes it NaN.
#
# Output seen:
#   ids: [4294967301, 5] -> [5, 5]
#   row 12 of 10: 9.0
#   window of 4 from place 8: [6, 7, 8, 9]
#   loss of label 2: 0.41, of label -1: 0.41, of label -100: nan
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
  jax==0.10.2 jaxlib==0.10.2 optax==0.2.8 numpy==2.4.6

cat > indices.py <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
import optax

ids = np.array([2**32 + 5, 5])
print(f"ids: {ids.tolist()} -> {jnp.asarray(ids).tolist()}")
table = jnp.arange(10.0)
print(f"row 12 of 10: {table[jnp.array([12])][0]}")
print(f"window of 4 from place 8: {jax.lax.dynamic_slice(jnp.arange(10), (8,), (4,)).tolist()}")
losses = {
    label: optax.softmax_cross_entropy_with_integer_labels(jnp.array([[1.0, 2.0, 3.0]]), jnp.array([label]))[0]
    for label in (2, -1, -100)
}
print("loss", ", ".join(f"of label {label}: {loss:.2f}" for label, loss in losses.items()))
PYTHON

venv/bin/python indices.py | tee found
diff seen found
