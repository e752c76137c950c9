"""Code outside of `trainjob/kinds/` asks a kind of model, its input and its target. It does not branch on the kind."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainjob.kinds import KINDS
from trainjob.kinds.model import Model

ROOT = Path(__file__).parents[3]
KINDS_FOLDER = ROOT / "trainjob/kinds"
FIELDS = set(Model.model_fields) - {"function"}
"""A function is run by code of its own, which the driver chooses."""
NAMES = set(KINDS) | {name for facts in KINDS.values() for name in facts.earlier_names}
NAMES_FIELDS = {"trainjob/api/spec_rules.py", "trainjob/api/tuning_rules.py"}
"""Rules across fields name them."""


def classes_in(file: Path) -> Iterator[str]:
    return (node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef))


_MODULES = [
    *KINDS_FOLDER.rglob("*.py"),
    *ROOT.glob("trainjob/evaluation/**/*.py"),
    ROOT / "trainjob/models/classifier.py",
]
OF_KINDS = {name for file in _MODULES for name in classes_in(file)}
"""Classes that belong to one kind, or to some of them."""


_AFFIXES = ("startswith", "endswith", "removeprefix", "removesuffix")


def constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def class_named_by(node: ast.AST) -> str | None:
    """The class that part of an isinstance names; None for one of pyarrow's, which has a Table, too."""
    if isinstance(node, ast.Attribute):
        return node.attr if ast.unparse(node.value) != "pa" else None
    return node.id if isinstance(node, ast.Name) else None


def branches(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            if {name for each in ast.walk(node.args[1]) if (name := class_named_by(each))} & OF_KINDS:
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Dict) and len(set(KINDS) & {constant(key) for key in node.keys}) > 1:
            yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.MatchValue) and constant(node.value) in KINDS:
            yield f"line {node.value.lineno}: case {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _AFFIXES:
            parts = [part for part in map(constant, node.args) if isinstance(part, str) and len(part) > 3]
            if any(name.startswith(part) or name.endswith(part) for part in parts for name in KINDS):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asks = any(isinstance(side, ast.Attribute) and side.attr in ("kind", "noun") for side in sides)
            named = {each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)}
            is_tested = any(isinstance(side, ast.Attribute) and side.attr == "classifier" for side in sides)
            if is_tested or named & set(KINDS) or (asks and named & (NAMES | {"text", "image"})):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Attribute) and node.attr in FIELDS:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def files() -> list[str]:
    found = [*ROOT.glob("trainjob/**/*.py"), *ROOT.glob("operator/trainjob_operator/**/*.py")]
    return sorted(str(file.relative_to(ROOT)) for file in found if KINDS_FOLDER not in file.parents)


def test_nothing_branches_by_the_kind_of_a_model() -> None:
    found = {name: list(branches(ast.parse((ROOT / name).read_text()))) for name in files()}
    assert {name: lines for name, lines in found.items() if lines and name not in NAMES_FIELDS} == {}


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(preprocessor.input, TextInput)",
        "isinstance(x, (int, ClassificationScores))",
        "isinstance(module, Classifier)",
        "isinstance(target.judge, ClassJudge)",
        "isinstance(target, targets.OneClass)",
        'widths = {"textClassifier": 1, "tableClassifier": 2}',
        'kind.endswith("Regressor")',
        "match kind:\n    case 'causalLM':\n        pass",
        'preprocessor.kind == "textClassifier"',
        'preprocessor.input.noun in ("text", "image")',
        'name == "causalLM"',
        "spec.model.causal_lm is not None",
        "spec.model.classifier is None",
    ],
)
def test_a_branch_is_found(code: str) -> None:
    assert len(list(branches(ast.parse(code)))) == 1
