"""docs/status.md has every reason that the operator gives."""

import ast
from pathlib import Path

import trainjob_operator
from unit.operator.operator_objects import OF_KUBERAY

ROOT = Path(__file__).parents[3]
PLACES = {"RayJobError": 0, "Verdict": 1}
"""The index of the argument that is the reason, by class."""


def reasons() -> set[str]:
    """The texts in the operator's source that are given as a reason."""
    found: set[str] = set()
    for path in Path(str(trainjob_operator.__file__)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PLACES:
                said = list(ast.walk(node.args[PLACES[node.func.id]]))
                found |= {part.value for part in said if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return found


def test_every_reason_is_explained():
    text = (ROOT / "docs" / "status.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    explained = {reason.strip() for row in rows for reason in row.split(",")}
    found = reasons() | set(OF_KUBERAY)
    assert {"HeadLost", "NoStorage", "ConfigChanged", "Finishing"} <= found
    assert {reason for reason in found if reason not in explained and f"{reason}`" not in text} == set()
