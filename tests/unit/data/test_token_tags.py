"""Lists of tokens with a tag each, in CoNLL columns and in tables, are read as texts with spans."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from predictor_runs import make_run
from trainjob.api import TrainJobSpec
from trainjob.cli.predicted_rows import classify
from trainjob.data import fit
from trainjob.data.read.conll import ConllFile
from trainjob.data.read.spec_parts import source_parts
from trainjob.data.read.token_tags import tagged_runs
from trainjob.driver.propose import proposed
from trainjob.errors import DataError, Notice
from trainjob.schema.spans import parsed
from trainjob.storage import Folder

TOKENS = ["Ada", "Lovelace", "went", "to", "New York", "."]
TAGS = ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]
TEXT, SPANS = "Ada Lovelace went to New York .", [(0, 12, "PER"), (21, 29, "LOC")]
FEATURES = {
    "tokens": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"},
    "ner_tags": {
        "feature": {"names": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"], "_type": "ClassLabel"},
        "_type": "List",
    },
}


def spec_of(file: Path, text: str = "tokens", label: str = "tags", **source: Any) -> TrainJobSpec:
    model = {"encoder": {"layers": 1, "hiddenSize": 32, "heads": 2, "vocabularySize": 100}, "maxLength": 16}
    dataset = {"train": {"uri": str(file), **source}, "text": [text], "label": label}
    return TrainJobSpec.model_validate({"model": {"tokenClassifier": model}, "dataset": dataset})


def rows_of(spec: TrainJobSpec) -> list[tuple[str, list[Any]]]:
    """The texts and their spans, as training reads them."""
    assert spec.dataset is not None
    assert spec.dataset.text is not None
    columns = [spec.dataset.text[0], str(spec.dataset.label)]
    tables = [rows.table for part in source_parts(spec, spec.dataset.train) for rows in part.read(columns)]
    return [(row[columns[0]], parsed(row[columns[1]])) for table in tables for row in table.to_pylist()]


def write_parquet(file: Path, numbers: list[list[int]], features: dict[str, Any] | None) -> Path:
    table = pa.table({"tokens": [TOKENS] * len(numbers), "ner_tags": numbers})
    if features is not None:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, file)
    return file


CONLL = """\ufeff-DOCSTART- -X- -X- O\r
\r
# id 7 domain=en\r
Ada NNP B-NP B-PER\r
Lovelace NNP I-NP I-PER\r
went VBD B-VP O\r
to TO B-PP O\r
New\u00a0York NNP B-NP B-LOC\r
. . O O\r
\r
\r
# SYM O O\r
1 CD O O"""


def test_conll_columns_are_read_as_spans(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    file.write_text(CONLL, encoding="utf-8", newline="")
    found = rows_of(spec_of(file, format="conll"))
    assert found == [(TEXT.replace("New York", "New\u00a0York"), SPANS), ("# 1", [])]
    tabs = tmp_path / "train.conll"
    tabs.write_text("\n".join("\t".join(line) for line in zip(TOKENS, TAGS, strict=True)))
    assert rows_of(spec_of(tabs)) == [(TEXT, SPANS)]


def test_lists_of_tokens_are_read_as_spans(tmp_path: Path) -> None:
    lines = tmp_path / "train.jsonl"
    lines.write_text(json.dumps({"tokens": TOKENS, "tags": TAGS}) + "\n" + json.dumps({"tokens": [], "tags": []}))
    assert rows_of(spec_of(lines)) == [(TEXT, SPANS), ("", [])]
    numbered = write_parquet(tmp_path / "train.parquet", [[1, 2, 0, 0, 3, 0]], FEATURES)
    assert rows_of(spec_of(numbered, label="ner_tags")) == [(TEXT, SPANS)]
    table = tmp_path / "train.csv"
    cells = [f'"{cell!s}"' for cell in (TOKENS, TAGS)]  # as pandas writes lists
    table.write_text("tokens,tags\n" + ",".join(cells))
    assert rows_of(spec_of(table)) == [(TEXT, SPANS)]


@pytest.mark.parametrize(
    ("tags", "runs"),
    [
        ("I-A I-A O I-A B-A", [(0, 2, "A"), (3, 4, "A"), (4, 5, "A")]),
        ("B-A I-A B-A I-B", [(0, 2, "A"), (2, 3, "A"), (3, 4, "B")]),
        ("B-A I-A E-A S-A S-B", [(0, 3, "A"), (3, 4, "A"), (4, 5, "B")]),
        ("B-A L-A U-A", [(0, 2, "A"), (2, 3, "A")]),
        ("B-A M-A E-A W-A", [(0, 3, "A"), (3, 4, "A")]),
        ("O I-A E-A I-A", [(1, 3, "A"), (3, 4, "A")]),
        ("B_a-b I_a-b", [(0, 2, "a-b")]),
    ],
    ids=["IOB1", "IOB2", "BIOES", "BILOU", "BMEWO", "broken", "underscores"],
)
def test_the_schemes_of_tags(tags: str, runs: list[Any]) -> None:
    assert list(tagged_runs(tags.split())) == runs


def problems(spec: TrainJobSpec) -> str:
    with pytest.raises(DataError) as caught:
        fit(spec)
    return str(caught.value)


def test_wrong_tags_are_named_with_their_rows(tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    rows: list[dict[str, Any]] = [
        {"tokens": TOKENS, "tags": TAGS},
        {"tokens": TOKENS, "tags": TAGS[:-1]},
        {"tokens": ["a", "b"], "tags": ["person", "O"]},
        {"tokens": ["a", "b"], "tags": [1, 0]},
        {"tokens": ["a", 7], "tags": ["O", "O"]},
        {"tokens": ["a", "b"], "tags": [[0, 1, "A"]]},
        {"tokens": ["a", " "], "tags": ["O", "B-A"]},
        {"tokens": ["a", "b"], "tags": None},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    found = problems(spec_of(file))
    assert "7 rows cannot be used" in found
    for words in (
        "6 tokens, 5 tags",
        "line 3",
        "a tag must be O, or B-, I-, E- or S- and a type: person; write I- before each, or B-",
        "the tags are numbers without names",
        'column "tokens": a token is not text: 7',
        "a tag must be O, or",
        "a span is empty or blank",
        "the cell is empty",
    ):
        assert words in found
    nameless = write_parquet(tmp_path / "train.parquet", [[1, 2, 0, 0, 3, 0]], None)
    assert "numbers without names" in problems(spec_of(nameless, label="ner_tags"))


def test_wrong_lines_of_conll_are_named(tmp_path: Path) -> None:
    file = tmp_path / "train.conll"
    file.write_bytes(b"a O\nb\n\nc\n\nd O\n\n\xff O\n\ne X\n")
    found = problems(spec_of(file))
    assert "4 rows cannot be used" in found
    for words in (
        "line 2",
        "2 on line 1, 1 on line 2",
        "line 4",
        "the line has one column",
        "line 8",
        "UTF-8",
        "line 10",
    ):
        assert words in found
    file.write_text("a O\n")
    assert 'has no column "ner"; it has tokens, tags' in problems(spec_of(file, label="ner"))
    others = {"model": {"textClassifier": {"encoder": {}}}, "dataset": spec_of(file).dataset}
    assert "which model.tokenClassifier learns" in problems(TrainJobSpec.model_validate(others))


@pytest.mark.parametrize("optional", [(), ("tags",)], ids=["training", "prediction"])
def test_conll_u_is_not_read_by_the_numbers_of_its_tokens(tmp_path: Path, optional: tuple[str, ...]) -> None:
    file = tmp_path / "train.conll"
    lines = [f"{number}\t{word}{7 * chr(9)}_\t{misc}" for number, word, misc in (("1-2", "im", "_"), ("1", "in", "_"))]
    file.write_text("# text = im\n" + "\n".join(lines) + "\n")
    with pytest.raises(DataError, match="line 2: this is CoNLL-U, whose first column numbers the tokens"):
        list(ConllFile(str(file), None, file.stat().st_size, optional).read(None))
    file.write_text("\t".join(["1984", *["-"] * 8, "O"]))
    assert [rows.table.to_pylist() for rows in ConllFile(str(file), None, 30, optional).read(None)]


def test_tokens_are_joined_in_predictions_too(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    words = [chance.choice(["Ada", "Oslo", "went", "to"], 5).tolist() for _ in range(40)]
    lines = [[f"{word} {'B-NAME' if word in ('Ada', 'Oslo') else 'O'}" for word in each] for each in words]
    (tmp_path / "train.conll").write_text("\n\n".join("\n".join(each) for each in lines))
    spec = spec_of(tmp_path / "train.conll")
    run = Folder(str(make_run(tmp_path / "run", spec.model_dump(by_alias=True, exclude_unset=True))))
    new = {"new.conll": "Ada\nwent\n\nto\nOslo\n", "new.jsonl": ""}
    new["new.jsonl"] = "\n".join(json.dumps({"tokens": each}) for each in (["Ada", "went"], ["to", "Oslo"]))
    found = []
    for name, content in new.items():
        (tmp_path / name).write_text(content)
        output = tmp_path / f"{name}.parquet"
        with pytest.warns(Notice, match="joined by single spaces"):
            classify(run, None, None, str(tmp_path / name), {}, output)
        found.append(pq.read_table(output).to_pylist())
    assert [row["tokens"] for row in found[0]] == ["Ada went", "to Oslo"]
    assert [row["prediction"] for row in found[0]] == [row["prediction"] for row in found[1]]


def test_init_proposes_tokens_and_tags(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": list("abcd"),
            "tokens": [[*TOKENS[:-1], str(number)] for number in range(4)],
            "chunk_tags": [[1, 2, 0, 0, 1, 0]] * 4,
        }
    )
    table = table.append_column("ner_tags", [[[1, 2, 0, 0, 3, 0]] * 4])
    features = FEATURES | {"chunk_tags": {"feature": {"names": ["O", "B-NP", "I-NP"], "_type": "ClassLabel"}}}
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, tmp_path / "train.parquet")
    text = proposed(str(tmp_path / "train.parquet"), None, [], tmp_path)
    assert "text: [tokens]  # lists of tokens, joined by single spaces" in text
    assert "label: ner_tags" in text
    (tmp_path / "train.conll").write_text("Ada B-PER\nwent O\n\nOslo B-LOC\n\nto O\n")
    text = proposed(str(tmp_path / "train.conll"), None, [], tmp_path)
    assert "text: [tokens]" in text
    assert "label: tags" in text
