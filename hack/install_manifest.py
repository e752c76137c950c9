"""`python hack/install_manifest.py PATH` writes one manifest with all objects of the chart, for clusters without Helm.

`hack` must be on PYTHONPATH, for the project's pinned Helm.
"""

import re
import subprocess
import sys
from pathlib import Path

from servers.programs import program

CHART = Path(__file__).parents[1] / "charts" / "trainjob"
NAMESPACE = "trainjob-system"

_HELM_LINES = re.compile(r"^( *(app.kubernetes.io/managed-by|helm.sh/chart): .*|# Source: .*)\n", re.MULTILINE)


def install_manifest() -> str:
    """The chart's objects with default values and their namespace, in YAML. The policy for progress reports precedes
    the permission."""
    options = ["--namespace", NAMESPACE, "--set", "crds.keep=false", "--no-hooks"]
    rendered = subprocess.run(
        [program("helm"), "template", "trainjob", CHART, *options],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    namespace = f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n"
    objects = _HELM_LINES.sub("", rendered.stdout).removeprefix("---\n").split("\n---\n")
    objects.sort(key=lambda text: "\nkind: ValidatingAdmissionPolicy" not in f"\n{text}")
    return "---\n".join([namespace, *(f"{text.rstrip()}\n" for text in objects)])


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(install_manifest(), encoding="utf-8")
