#!/usr/bin/env bash
# Patterns of huggingface_hub's snapshot_download match over slashes, and "**/" leaves out files at the root.
#
# Seen with: huggingface-hub 2.4.0, CPython 3.11.
#
# allow_patterns and ignore_patterns are compared by fnmatch with the whole path, where * also stands for slashes and **
# for the same as *. So data/*.csv brings the files of all folders below, and **/*.json, which in globs of the same
# library's file system means "in any folder", brings none from the root: config.json is missing. A folder needs its
# slash: ignore_patterns="onnx" ignores nothing.
#
# Output seen:
#   data/*.csv: ['data/train.csv', 'data/old/train.csv']
#   **/*.json: ['onnx/config.json']
#   *.json: ['config.json', 'onnx/config.json']
#   all but "onnx": ['config.json', 'onnx/config.json', 'data/train.csv', 'data/old/train.csv']
#   all but "onnx/": ['config.json', 'data/train.csv', 'data/old/train.csv']
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check huggingface-hub==2.4.0

cat > match.py <<'PYTHON'
from huggingface_hub.utils import filter_repo_objects  # what snapshot_download and upload_folder call

FILES = ["config.json", "onnx/config.json", "data/train.csv", "data/old/train.csv"]
for pattern in ("data/*.csv", "**/*.json", "*.json"):
    print(f"{pattern}:", list(filter_repo_objects(FILES, allow_patterns=pattern)))
for pattern in ("onnx", "onnx/"):
    print(f'all but "{pattern}":', list(filter_repo_objects(FILES, ignore_patterns=pattern)))
PYTHON

venv/bin/python match.py | tee found
diff seen found
