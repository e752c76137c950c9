#!/usr/bin/env bash
# One file with the word "test" in its name makes datasets leave out all other files of a folder.
#
# Seen with: datasets 5.2.0, Pillow 13.0.0, CPython 3.11.
#
# load_dataset looks for names of splits (train, test, eval, dev, …) in names of files and folders, as words between
# separators. Files that match no split are used only if no file at all matches one. So a picture called blood_test.png
# in a folder of a class, or a table called ab_test_results.csv, becomes the split "test" by itself, and every other
# file is dropped, with its class. Nothing is printed. A folder of a class that is called "dev" does the same.
#
# Output seen:
#   6 pictures of 2 classes: {'train': 6}
#   one renamed to blood_test.png: {'test': 1}
#   customers.csv, orders.csv: {'train': 2}
#   customers.csv, orders.csv, ab_test_results.csv: {'test': 1}
#   classes cat, dev, dog: {'validation': 1}
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check datasets==5.2.0 pillow==13.0.0

cat > load.py <<'PYTHON'
from pathlib import Path

from datasets import disable_progress_bars, load_dataset
from PIL import Image

disable_progress_bars()


def picture(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4)).save(path)


def sizes(kind, folder):
    return {split: len(rows) for split, rows in load_dataset(kind, data_dir=str(folder)).items()}


pictures = Path("pictures")
for name in ("a", "b"):
    for number in range(3):
        picture(pictures / name / f"{number}.png")
print("6 pictures of 2 classes:", sizes("imagefolder", pictures))
(pictures / "b" / "0.png").rename(pictures / "b" / "blood_test.png")
print("one renamed to blood_test.png:", sizes("imagefolder", pictures))

tables = Path("tables")
tables.mkdir()
names = ["customers.csv", "orders.csv"]
for name in names:
    (tables / name).write_text("a\n1\n")
print(", ".join(names) + ":", sizes("csv", tables))
(tables / "ab_test_results.csv").write_text("a\n1\n")
print(", ".join([*names, "ab_test_results.csv"]) + ":", sizes("csv", tables))

for name in ("cat", "dev", "dog"):
    picture(Path("classes") / name / "0.png")
print("classes cat, dev, dog:", sizes("imagefolder", Path("classes")))
PYTHON

HF_HOME="$folder/hub" HF_HUB_OFFLINE=1 venv/bin/python load.py 2>/dev/null | tee found
diff seen found
