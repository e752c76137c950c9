"""`trainjob predict` and `evaluate` on images in tables."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trainjob import Predictor
from trainjob.cli.evaluate import evaluate
from trainjob.cli.predict import predict
from trainjob.errors import UserError


@pytest.fixture
def paths(image_folder: Path) -> list[Path]:
    return sorted(image_folder.glob("*/*.png"))


@pytest.fixture
def listed(tmp_path: Path, paths: list[Path]) -> Path:
    """A table with the paths of the images."""
    table = tmp_path / "t.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("id", "path", "label"), *((f"00{i}", path, path.parent.name) for i, path in enumerate(paths))]
        )
    return table


@pytest.fixture
def embedded(tmp_path: Path, paths: list[Path]) -> Path:
    """A table with the images themselves, which are not in its first column."""
    images = [{"bytes": path.read_bytes(), "path": path.name} for path in paths]
    labels = [path.parent.name for path in paths]
    pq.write_table(pa.table({"label": labels, "photo": images}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_predictions_have_the_table_and_the_row(
    tmp_path: Path, image_run: Path, paths: list[Path], listed: Path, embedded: Path
) -> None:
    expected = Predictor.load(image_run).predict(paths)
    for table, columns, places in (
        (listed, ["id", "path", "label", "image"], [f"row {i} ({path})" for i, path in enumerate(paths, 1)]),
        (embedded, ["label", "image"], [f"row {i}" for i in range(1, len(paths) + 1)]),
    ):
        predict(str(image_run), str(table), output=tmp_path / "out.parquet")
        found = pq.read_table(tmp_path / "out.parquet")
        assert found.column_names[: len(columns) + 1] == [*columns, "prediction"]
        assert found["prediction"].to_pylist() == expected
        assert found["image"].to_pylist() == [f"{table}, {place}" for place in places]
    predict(str(image_run), str(listed), output=tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["id"][7].as_py() == "007"


@pytest.mark.filterwarnings("ignore:.*trained on:trainjob.errors.Notice")
def test_tables_are_scored_as_their_images_in_a_folder(
    image_run: Path, image_folder: Path, listed: Path, embedded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for data in (image_folder, listed, embedded):
        evaluate(str(image_run), str(data))
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] == shown[2]


def test_a_table_without_images_is_refused(tmp_path: Path, image_run: Path) -> None:
    (tmp_path / "t.csv").write_text("text,label\na,b\n")
    with pytest.raises(UserError, match=r"t\.csv: none of the columns looks like images or their paths; it has text"):
        predict(str(image_run), str(tmp_path / "t.csv"), output=tmp_path / "out.csv")
