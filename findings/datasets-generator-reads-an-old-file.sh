#!/usr/bin/env bash
# Dataset.from_generator returns the rows of the first call, though the file that the generator reads has changed.
#
# Seen with: datasets 5.2.0, CPython 3.11.
#
# The cache is found by the generator's code and arguments. A file that it opens is neither, also where its path is an
# argument: after new or corrected rows, the same script, days later and in another process, trains on the old ones, and
# nothing is printed. load_dataset of the same file sees the change.
#
# Output seen:
#   file: spam ham; from_generator: spam ham; load_dataset: spam ham
#   file: spam spam ham; from_generator: spam ham; load_dataset: spam spam ham
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datasets==5.2.0

cat > generate.py <<'PYTHON'
from pathlib import Path

from datasets import Dataset, disable_progress_bars, load_dataset

disable_progress_bars()
file = Path("rows.csv")


def rows(path):
    for line in Path(path).read_text().split()[1:]:
        yield {"label": line}


for labels in ("spam ham", "spam spam ham"):
    file.write_text("\n".join(["label", *labels.split()]) + "\n")
    generated = Dataset.from_generator(rows, gen_kwargs={"path": str(file)})["label"][:]
    loaded = load_dataset("csv", data_files=str(file), split="train")["label"][:]
    print(f"file: {labels}; from_generator: {' '.join(generated)}; load_dataset: {' '.join(loaded)}")
PYTHON

HF_HOME="$folder/hub" HF_HUB_OFFLINE="1" venv/bin/python generate.py 2>/dev/null | tee found
diff seen found
