"""`python hack/install_manifest.py PATH` writes one manifest with all objects of the chart, for clusters without Helm.

It needs `hack` on PYTHONPATH, for the Helm that the project pins.
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
    """The chart's objects with its default values, in YAML, and the namespace that they are installed in: the policy of
    who may report progress comes before the right to."""
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
