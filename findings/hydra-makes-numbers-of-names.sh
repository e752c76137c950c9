#!/usr/bin/env bash
# Hydra and Fire read the name of a run, 2024_01_15, as 20240115, and a commit such as 12e4567 as infinity.
#
# Seen with: hydra-core 1.3.8, omegaconf 2.3.1, fire 0.7.1, pyyaml 6.0.3, CPython 3.11.
#
# Underscores may divide digits in Python and in YAML 1.1, so dates, versions and numbers of folds with underscores are
# integers: on the command line of Hydra and Fire, and in every file that PyYAML reads. A folder named by the value gets
# another name than the one that was asked for, and runs 1_12 and 11_2 share one. An abbreviated commit of digits and
# one e is a float, which overflows. Only names with a hyphen or another letter stay texts. In Hydra, quotes must reach
# it: 'run="2024_01_15"'.
#
# Output seen:
#   2024_01_15: Hydra 20240115, Fire 20240115, OmegaConf 20240115, PyYAML 20240115
#   2024-01: Hydra '2024-01', Fire '2024-01', OmegaConf '2024-01', PyYAML '2024-01'
#   1_12: Hydra 112, Fire 112, OmegaConf 112, PyYAML 112
#   12e4567: Hydra inf, Fire inf, OmegaConf inf, PyYAML '12e4567'
#   "2024_01_15": Hydra '2024_01_15', Fire '2024_01_15', OmegaConf '2024_01_15', PyYAML '2024_01_15'
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check hydra-core==1.3.8 omegaconf==2.3.1 fire==0.7.1 pyyaml==6.0.3

cat > names.py <<'PYTHON'
import contextlib
import io

import fire
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

hydra = OverridesParser.create()


def by_fire(text):
    with contextlib.redirect_stdout(io.StringIO()):
        return fire.Fire(lambda run: [run], command=[f"--run={text}"])[0]


readers = {
    "Hydra": lambda text: hydra.parse_override(f"run={text}").value(),
    "Fire": by_fire,
    "OmegaConf": lambda text: OmegaConf.create(f"run: {text}").run,
    "PyYAML": lambda text: yaml.safe_load(f"run: {text}")["run"],
}
for text in ("2024_01_15", "2024-01", "1_12", "12e4567", '"2024_01_15"'):
    print(f"{text}:", ", ".join(f"{name} {read(text)!r}" for name, read in readers.items()))
PYTHON

venv/bin/python names.py | tee found
diff seen found
