"""`python hack/mutation.py [--fifth] [FILE …]`: do the tests notice changes to the code? Prints a table.

mutmut makes one change after another to a file and runs the tests that reach it. A mutant that passes them all has
survived, and is printed as a diff. Each file is tested in a copy of the repository, `build/mutation`. With `--fifth`,
only the first mutant of each function and every fifth after it are tested.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "mutation"
LIMIT = 3 * 3600
"""Timeout in seconds for one file."""
ENVIRONMENT = os.environ | {"PYTHONPATH": str(WORK / "mutants" / "src")}
"""The environment, also for processes started by tests."""

STATUS = [
    f"unit/operator/test_{name}.py"
    for name in (
        "verdicts",
        "verdict_order",
        "kept_fields",
        "job_status",
        "job_conditions",
        "job_workers",
        "interruptions",
        "corners",
    )
]
TESTS = {
    "trainjob/data/first_pass/split.py": ["unit/data/test_split.py"],
    "trainjob/evaluation/scores/classes.py": ["unit/evaluation"],
    "trainjob/runs/checkpoints.py": ["unit/runs/test_checkpoint_tensors.py", "unit/worker/test_checkpoints.py"],
    "trainjob/worker/checkpointing.py": ["unit/worker/test_checkpoints.py", "unit/worker/test_checkpoint_saving.py"],
    "trainjob/worker/scoring.py": ["unit/worker/test_scoring.py"],
    "trainjob/worker/loop.py": [
        "unit/worker/test_steps.py", "unit/worker/test_epochs.py", "unit/worker/test_resuming.py"
    ],
    "trainjob_operator/status.py": STATUS,
    "trainjob_operator/verdict.py": STATUS,
    "trainjob_operator/render.py": [
        f"unit/operator/test_{name}.py" for name in ("ray_job", "ray_cluster", "snapshot", "job_pods")
    ],
}  # fmt: skip
"""The tests for each mutated file."""

FIFTH = ("*1", "*6")
"""Patterns for mutant names, which end in a number within their function."""
SURVIVED, UNTESTED = 0, 33
"""mutmut's exit codes; any other means that the mutant was noticed: a test failed or timed out, or the code did not
load."""


def survivors(file: str, patterns: Sequence[str]) -> tuple[int, list[str]]:
    """How many mutants of a file were tried, and what those change that no test notices.

    Only mutants whose names match one of the patterns are tried; without patterns all are.
    """
    shutil.rmtree(WORK, ignore_errors=True)
    mutated = WORK / "mutants" / "src"
    mutated.mkdir(parents=True)  # Python would go on taking it for missing
    for package in ("trainjob", "operator/trainjob_operator"):
        shutil.copytree(ROOT / package, WORK / "src" / Path(package).name)
    for folder in ("tests", "hack"):
        shutil.copytree(ROOT / folder, WORK / folder)
    shutil.copy(ROOT / "pyproject.toml", WORK)
    settings = {
        "source_paths": ["src"],
        "only_mutate": [f"src/{file}"],
        "also_copy": ["hack"],
        "pytest_add_cli_args_test_selection": [f"tests/{each}" for each in TESTS[file]],
        "process_isolation": ["forkserver"],  # PyTorch does not bear a fork after it has computed
    }
    lines = [f"{name} = " + "\n    ".join(values) for name, values in settings.items()]
    (WORK / "setup.cfg").write_text("\n".join(["[mutmut]", *lines]))
    mutmut("run", "--max-children=1", *patterns)
    results = json.loads((mutated / f"{file}.meta").read_text())["exit_code_by_key"]
    codes = {name: code for name, code in results.items() if code is not None}
    left = [name for name, code in codes.items() if code in (SURVIVED, UNTESTED)]
    if left and is_noticed("none", TESTS[file]):
        sys.exit("the tests fail where nothing is changed")
    return len(codes), [mutmut("show", name) for name in left if not is_noticed(name, TESTS[file])]


def is_noticed(mutant: str, tests: Sequence[str]) -> bool:
    """Whether any test fails with a mutant. mutmut runs only tests that reach it in their own process, and does not see
    code that only other ranks reach."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", *(f"tests/{each}" for each in tests)]
    settings = ENVIRONMENT | {"MUTANT_UNDER_TEST": mutant}
    done = subprocess.run(command, cwd=WORK / "mutants", env=settings, capture_output=True, timeout=LIMIT)
    return done.returncode != 0


def mutmut(*arguments: str) -> str:
    """mutmut's output; if mutmut fails, exits with its last lines."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    done = subprocess.run(
        command, cwd=WORK, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT
    )
    printed = done.stdout.decode().replace("\r", "\n")
    return printed if done.returncode == 0 else sys.exit(printed[-3000:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", default=list(TESTS))
    parser.add_argument("--fifth", action="store_true")
    arguments = parser.parse_args()
    left: list[str] = []
    print("| file | mutants | survived | killed | minutes |\n|---|---|---|---|---|", flush=True)
    for file in arguments.files:
        since = time.monotonic()
        count, survived = survivors(file, FIFTH if arguments.fifth else ())
        minutes, rate = (time.monotonic() - since) / 60, 1 - len(survived) / count
        print(f"| `{file}` | {count} | {len(survived)} | {rate:.1%} | {minutes:.1f} |", flush=True)
        left += survived
    print("", *left, sep="\n")


if __name__ == "__main__":
    main()
