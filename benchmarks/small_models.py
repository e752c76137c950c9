"""Measures smaller models of a text classifier on the docstrings: each variant of `trainjob compress` compared with the
original model, and a student compared with its teacher. Run examples/make_docstrings.py first.

The teacher is a transformer from scratch, larger than the example's. Models are measured as in `trainjob compress`.
Ratios are relative to the teacher; differences in F1 are on the test set. The last table compares the results with the
aims in docs/benchmarks.md.
"""

import argparse
import tempfile
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

from trainjob.api.load import load_trainjob
from trainjob.compress.variants import VariantRequest, compress
from trainjob.driver.run import run
from trainjob.runs.variants import Variant, Variants
from trainjob.storage import Folder

EXAMPLE = Path(__file__).parent.parent / "examples" / "docstrings.yaml"
TEACHER = "{layers: 3, hiddenSize: 256, heads: 4, vocabularySize: 16000}"
STUDENT = "{layers: 1, hiddenSize: 128, heads: 4, vocabularySize: 8000}"


def trained(name: str, encoder: str, folder: str, epochs: int, *changes: str) -> Folder:
    overrides = [
        f"metadata.name={name}",
        f"spec.storage={{uri: {folder}}}",
        f"spec.model.textClassifier.encoder={encoder}",
        f"spec.training.epochs={epochs}",
        "spec.training.optimizer.adamW.learningRate=1.0e-3",
        "spec.dataset.loader=dataLoader",
        "spec.baselines={}",
        *changes,
    ]
    return run(load_trainjob(EXAMPLE, overrides), source=EXAMPLE.parent, started=time.time()).run


def lines(found: Variants, teacher: Variant) -> list[tuple[str, ...]]:
    return [
        (
            each.name,
            f"{each.size / 2**20:.1f} MiB",
            f"{each.size / teacher.size:.2f}",
            f"{each.rows_per_second:.0f}",
            f"{each.rows_per_second / teacher.rows_per_second:.2f}",
            f"{each.latency_p50 * 1e3:.2f} ms",
            f"{each.latency_p50 / teacher.latency_p50:.2f}",
            f"{each.f1.value:.4f}",
            f"{each.f1.value - teacher.f1.value:+.4f}",
        )
        for each in found.variants
    ]


def aims(found: Variants, students: Sequence[Variant]) -> Generator[tuple[str, str, str, str]]:
    """Figure, aim, result, and whether it meets the aim."""
    teacher, *smaller = found.variants
    for title, models, faster, size, loss in (
        ("fastest variant", smaller, 3.0, 0.25, 0.01),
        ("student with a teacher", students, 5.0, 1.0, 0.03),
    ):
        right = [each for each in models if teacher.f1.value - each.f1.value <= loss] or models
        best = max(right, key=lambda each: each.rows_per_second)
        speed, share = best.rows_per_second / teacher.rows_per_second, best.size / teacher.size
        lost = teacher.f1.value - best.f1.value
        yield f"{title} ({best.name}): rows/s", f">= {faster:g} x", f"{speed:.2f} x", met(speed >= faster)
        if size < 1:
            yield "... its size", f"<= {size:g} x", f"{share:.2f} x", met(share <= size)
        yield "... F1 that it lacks", f"<= {loss:g}", f"{lost:.4f}", met(lost <= loss)


def met(is_met: bool) -> str:
    return "met" if is_met else "missed"


def show(headings: Sequence[str], table: Iterable[Sequence[str]]) -> None:
    print(f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}")
    for line in table:
        print(f"| {' | '.join(line)} |")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--student-epochs", type=int, default=8)
    parser.add_argument("--prune", type=float, default=0.5)
    parser.add_argument("--folder", type=Path, help="keeps what is trained, so that a second time it is only measured")
    arguments = parser.parse_args()
    with nullcontext(arguments.folder) if arguments.folder else tempfile.TemporaryDirectory() as folder:
        large = trained("teacher", TEACHER, folder, arguments.epochs)
        compress(large, VariantRequest(onnx=True, int8=True))
        of_teacher = compress(large, VariantRequest(prune=arguments.prune, int8=True))
        teacher = of_teacher.variants[0]
        table = lines(of_teacher, teacher)
        students: list[Variant] = []
        for name, changes in (
            ("alone", []),
            ("taught", [f"spec.training.distillation={{teacher: {large.uri}, temperature: 2, weight: 0.7}}"]),
        ):
            small = trained(f"student-{name}", STUDENT, folder, arguments.student_epochs, *changes)
            found = compress(small, VariantRequest(int8=True))
            table += [(f"student {name}, {line[0]}", *line[1:]) for line in lines(found, teacher)]
            students = found.variants
    show(("model", "weights", "ratio", "rows/s", "ratio", "one row", "ratio", "F1", "difference"), table)
    show(("figure", "aim", "measured", ""), aims(of_teacher, students[:1]))


if __name__ == "__main__":
    main()
