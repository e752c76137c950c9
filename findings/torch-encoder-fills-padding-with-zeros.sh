#!/usr/bin/env bash
# TransformerEncoder gives zeros for padding in evaluation and other numbers in training, and means over rows change.
#
# Seen with: torch 2.15.0, CPython 3.11. Installs PyTorch with CUDA.
#
# With src_key_padding_mask, a faster path is taken in eval mode without gradients, which leaves padding out and fills
# it up with zeros. In training, padding has vectors like any other place. Those of real tokens are the same, so nothing
# seems wrong; but a head on the mean, or the last place, of a row sees other numbers when the model is used than when
# it learned, although there is no dropout. The same eval with gradients is as in training. enable_nested_tensor=False
# turns it off.
#
# Output seen:
#   enable_nested_tensor=True, train() with gradients: padding all zero False, mean of row 0 -0.742
#   enable_nested_tensor=True, eval() with gradients: padding all zero False, mean of row 0 -0.742
#   enable_nested_tensor=True, eval() without gradients: padding all zero True, mean of row 0 -0.414
#   enable_nested_tensor=False, train() with gradients: padding all zero False, mean of row 0 -0.742
#   enable_nested_tensor=False, eval() with gradients: padding all zero False, mean of row 0 -0.742
#   enable_nested_tensor=False, eval() without gradients: padding all zero False, mean of row 0 -0.742
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check torch==2.15.0 numpy==2.4.6

cat > encode.py <<'PYTHON'
import torch
from torch import nn

torch.manual_seed(0)
rows = torch.randn(2, 5, 8)
is_padding = torch.tensor([[False, False, False, True, True], [False, False, True, True, True]])


def means(encoder, gradients):
    with torch.set_grad_enabled(gradients):
        found = encoder(rows, src_key_padding_mask=is_padding)
    return f"padding all zero {not found[is_padding].any()}, mean of row 0 {found[0, :, 0].mean():.3f}"


for nested in (True, False):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)
    for what, gradients in (("train()", True), ("eval()", True), ("eval()", False)):
        encoder.train(what == "train()")
        with_them = "with" if gradients else "without"
        print(f"enable_nested_tensor={nested}, {what} {with_them} gradients: {means(encoder, gradients)}")
PYTHON

venv/bin/python encode.py 2>/dev/null | tee found
diff seen found
