#!/usr/bin/env bash
# soundfile reads a WAV file of floats as silence, if it is asked for 16-bit samples; all other files are scaled.
#
# Seen with: soundfile 0.14.0, numpy 2.4.6, CPython 3.11.
#
# dtype="int16" gives the samples of a file of 8, 16 or 24 bits, FLAC, OGG or MP3 from -32768 to 32767. Those of a WAV
# file of floats, as resampled audio often is, are cast as they are: all between -1 and 1 become 0. A mixed folder is
# then sound and silence, in the same type and shape. dtype="float32", the numbers from -1 to 1, is right for each file.
#
# Output seen:
#   tone.flac, PCM_16: loudest sample as int16 16384, as float32 0.500
#   tone.wav, PCM_24: loudest sample as int16 16384, as float32 0.500
#   tone.wav, PCM_16: loudest sample as int16 16384, as float32 0.500
#   tone.wav, FLOAT: loudest sample as int16 0, as float32 0.500
#   tone.wav, DOUBLE: loudest sample as int16 0, as float32 0.500
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check soundfile==0.14.0 numpy==2.4.6

cat > sound.py <<'PYTHON'
import numpy as np
import soundfile

RATE = 16000
sound = 0.5 * np.sin(np.linspace(0, 2 * np.pi * 440, RATE, endpoint=False))
for file, subtype in (
    ("tone.flac", "PCM_16"),
    ("tone.wav", "PCM_24"),
    ("tone.wav", "PCM_16"),
    ("tone.wav", "FLOAT"),
    ("tone.wav", "DOUBLE"),
):
    soundfile.write(file, sound, RATE, subtype=subtype)
    whole, _ = soundfile.read(file, dtype="int16")
    floats, _ = soundfile.read(file, dtype="float32")
    print(f"{file}, {subtype}: loudest sample as int16 {np.abs(whole).max()}, as float32 {np.abs(floats).max():.3f}")
PYTHON

venv/bin/python sound.py | tee found
diff seen found
