"""The files of the repository that are derived from the TrainJob type."""

from pathlib import Path
from typing import Any

import yaml

from trainjob.crd.definition import crd
from trainjob.crd.reference import reference

ROOT = Path(__file__).parents[2]
"""The repository."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Every use is written out: not every reader of YAML follows anchors."""
        return True


def generated_files() -> dict[str, str]:
    """Text by path in the repository."""
    definition = yaml.dump(crd(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return {
        "manifests/crd.yaml": "# Made by `python -m trainjob.crd`; change trainjob/api instead.\n" + definition,
        "docs/reference.md": reference(),
    }
