#!/usr/bin/env bash
# MLflow's latest value of a metric is the one of the highest step, and of equal ones the largest value.
#
# Seen with: mlflow-skinny 3.17.2, CPython 3.11.
#
# run.data.metrics is shown in tables and compared in searches. After a restart from an earlier checkpoint, it keeps the
# value of the attempt that failed until its step is passed. Without step=, all values have step 0, and where two fall
# into one millisecond, the larger one counts: of losses, the worse. The history holds all of them.
#
# Output seen:
#   steps 0 to 3, then again 1 and 2: latest 0.1, last of the history 0.6
#   0.9 and then 0.4 in one millisecond: latest 0.9
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check mlflow-skinny==3.17.2

cat > log.py <<'PYTHON'
from mlflow import MlflowClient

client = MlflowClient()
experiment = client.create_experiment("losses")


def latest(values):
    run = client.create_run(experiment).info.run_id
    for value, step, milliseconds in values:
        client.log_metric(run, "loss", value, step=step, timestamp=milliseconds)
    return client.get_run(run).data.metrics["loss"], client.get_metric_history(run, "loss")[-1].value


before = [(0.9, 0, 1000), (0.8, 1, 1001), (0.7, 2, 1002), (0.1, 3, 1003)]
again = latest([*before, (0.7, 1, 2000), (0.6, 2, 2001)])
print("steps 0 to 3, then again 1 and 2: latest %s, last of the history %s" % again)
print("0.9 and then 0.4 in one millisecond: latest %s" % latest([(0.9, 0, 1000), (0.4, 0, 1000)])[0])
PYTHON

MLFLOW_TRACKING_URI="file://$folder/runs" MLFLOW_ALLOW_FILE_STORE="true" venv/bin/python log.py 2>/dev/null | tee found
diff seen found
