#!/usr/bin/env bash
# TensorBoard's EventAccumulator returns 10,000 of a run's values, drawn at random, and the best may be missing.
#
# Seen with: tensorboard 2.21.0, CPython 3.11.
#
# The class by which scripts read event files keeps a sample of 10,000 scalars of each name, as the page needs no more.
# The minimum, or the step at which it was reached, is then that of a sample. Nothing says so; the first and last steps
# are there. size_guidance={"scalars": 0} keeps all. The sample is drawn by a fixed seed.
#
# Output seen:
#   {}: 10000 values, last step 29999, lowest loss 1.0
#   {'size_guidance': {'scalars': 0}}: 30000 values, last step 29999, lowest loss 0.0
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tensorboard==2.21.0 numpy==2.4.6

cat > read.py <<'PYTHON'
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

STEPS, BEST = 30_000, 7_777
writer = EventFileWriter("run")
for step in range(STEPS):
    value = Summary.Value(tag="loss", simple_value=0.0 if step == BEST else 1.0)
    writer.add_event(Event(step=step, wall_time=step, summary=Summary(value=[value])))
writer.close()

for options in ({}, {"size_guidance": {"scalars": 0}}):
    run = EventAccumulator("run", **options)
    run.Reload()
    losses = run.Scalars("loss")
    lowest = min(loss.value for loss in losses)
    print(f"{options}: {len(losses)} values, last step {losses[-1].step}, lowest loss {lowest}")
PYTHON

venv/bin/python read.py 2>/dev/null | tee found
diff seen found
