#!/usr/bin/env bash
# MLflow marks a run as failed if its program ends well by sys.exit(0).
#
# Seen with: mlflow-skinny 3.17.2, CPython 3.11.
#
# `with mlflow.start_run()` takes every exception for a failure, and sys.exit(0) raises SystemExit. Command lines that
# are built with argparse, click or typer end so as a rule. Called after the block, the same exit leaves the run
# FINISHED. A run without `with` that exits with code 1 is FINISHED, too: only an exception that nobody catches is told
# of.
#
# Output seen:
#   with start_run(), sys.exit(0) inside: FAILED
#   with start_run(), sys.exit(0) after it: FINISHED
#   start_run() alone, sys.exit(1): FINISHED
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mlflow-skinny==3.17.2
export MLFLOW_TRACKING_URI="file://$folder/runs" MLFLOW_ALLOW_FILE_STORE=true

cat > inside.py <<'PYTHON'
import sys

import mlflow

with mlflow.start_run():
    sys.exit(0)
PYTHON
cat > after.py <<'PYTHON'
import sys

import mlflow

with mlflow.start_run():
    pass
sys.exit(0)
PYTHON
cat > alone.py <<'PYTHON'
import sys

import mlflow

mlflow.start_run()
sys.exit(1)
PYTHON
cat > status.py <<'PYTHON'
import mlflow

print(mlflow.search_runs(search_all_experiments=True, output_format="list")[0].info.status)
PYTHON

report() {
  venv/bin/python "$2" > /dev/null 2>&1 || true
  echo "$1: $(venv/bin/python status.py 2> /dev/null)"
}
{
  report "with start_run(), sys.exit(0) inside" inside.py
  report "with start_run(), sys.exit(0) after it" after.py
  report "start_run() alone, sys.exit(1)" alone.py
} | tee found
diff seen found
