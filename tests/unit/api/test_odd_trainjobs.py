"""Whatever stands in a TrainJob's file or behind --set: a TrainJob, or errors that each name their place.

`make soak` tries many more.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from trainjob_files import GOOD, problems, write

from control_plane.strategies import trainjobs
from odd_documents import ODD_YAML, odd_yaml, spoiled
from soak import examples
from trainjob.api import TrainJob
from trainjob.api.document import InvalidDocument, dotted
from trainjob.api.load import load_trainjob
from trainjob.runs.folder import to_dict


def test_half_of_a_surrogate_pair_is_no_text(tmp_path: Path):
    config = 'config: {"\\udfff": 1, a: "\\ud800"}'
    text = GOOD.replace("    textClassifier:", f"    function: {{name: a:b, {config}}}\n    textClassifier:")
    found = problems(write(tmp_path, text))
    assert "job.yaml:6  spec.model.function.config.a  '\\ud800' does not fit the YAML tag !!str" in found
    assert "job.yaml:6  spec.model.function.config  '\\udfff' does not fit the YAML tag !!str" in found


def test_a_number_that_no_float_holds(tmp_path: Path):
    text = GOOD.replace("    textClassifier:", "    function: {name: a:b, config: {a: 1e999}}\n    textClassifier:")
    assert "job.yaml:6  spec.model.function.config.a  '1e999' does not fit the YAML tag !!float" in problems(
        write(tmp_path, text)
    )


def test_each_problem_has_one_line(tmp_path: Path):
    assert problems(write(tmp_path, GOOD), "spec.retries=[1,\n2]", "spec.suspend=1\n---\n2") == [
        "--set spec.retries=[1, 2]  spec.retries  expected a whole number, got a list",
        "--set spec.suspend=1 --- 2  spec.suspend  a second YAML document; only one is expected",
    ]
    assert problems(write(tmp_path, GOOD), "spec.\udcff=1") == [
        "--set spec.\udcff=1  write it as PATH=VALUE, such as spec.training.epochs=3"
    ]
    assert len(problems(write(tmp_path, GOOD + '  "a\\nb": 1\n'))) == 1


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd") / "job.yaml"


def check(file: Path, overrides: list[str]) -> None:
    try:
        job = load_trainjob(file, overrides)
    except InvalidDocument as error:
        misplaced = [line for line in str(error).splitlines() if not line.startswith((f"{file}", "--set "))]
        if misplaced:
            pytest.fail(f"errors without a place: {misplaced}")
        return
    document = to_dict(job)
    json.dumps(document, allow_nan=False).encode()
    text = yaml.safe_dump(document, allow_unicode=True)
    kept = TrainJob.model_validate(yaml.safe_load(text))
    assert to_dict(kept) == document, "it cannot be kept in a run's folder"


@examples(40)
@given(spoiled(trainjobs()))
def test_trainjobs_of_any_values(file: Path, document: Any):
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    check(file, [])


@examples(40)
@given(odd_yaml(trainjobs()))
def test_trainjobs_in_any_yaml(file: Path, text: str):
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    check(file, [])


@st.composite
def overrides(draw: st.DrawFn, document: Any) -> str:
    """A field of `document`, or of none, set to something."""
    paths = ["spec", "spec.training.epochs", "metadata.name", "", "[0]", "spec[0]", "a..b", ".", "spec.dataset.text[1]"]
    path = draw(st.sampled_from(paths) | st.sampled_from(list(_paths(document))))
    value = draw(st.sampled_from(ODD_YAML) | st.text(max_size=5) | st.sampled_from(["3", "x", "{}", "[]", "", "null"]))
    return f"{path}{draw(st.sampled_from(['=', '=', '=', '', ' = ']))}{value}"


def _paths(part: Any, path: tuple[str | int, ...] = ()) -> Any:
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    yield dotted(path)
    for key, value in items:
        yield from _paths(value, (*path, key))


@examples(40)
@given(trainjobs(), st.data())
def test_any_override(file: Path, document: Any, data: st.DataObject):
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    check(file, [data.draw(overrides(document)) for _ in range(data.draw(st.integers(1, 3)))])
