"""Images in tables: in Parquet as the Hugging Face hub has them, and by their paths."""

import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_specs import assert_same_examples, image_spec, random_images, write_csv, write_images, write_jsonl
from PIL import Image

from preprocessors import labels_of
from trainjob.api import Source, TrainJobSpec
from trainjob.data import Fitted, fit, prepare_examples
from trainjob.data.read.rows import Rows
from trainjob.data.read.spec_parts import source_parts
from trainjob.data.read.split_folders import with_split_folders
from trainjob.errors import DataError, Notice

LABELS = [("cat", "dog")[index % 2] for index in range(40)]
IMAGES = random_images(40)


def png(pixels: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


FILES = [png(pixels) for pixels in IMAGES]


def write_files(folder: Path) -> list[str]:
    """The images as PNG files, and their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, content in enumerate(FILES):
        (folder / f"{index}.png").write_bytes(content)
    return [f"{index}.png" for index in range(len(FILES))]


def write_hub(path: Path, images: Any = None, labels: Any = None, names: list[str] | None = None) -> Path:
    """A Parquet file with the columns `image` and `label`, and what the hub's `datasets` writes of ClassLabels."""
    structs = [{"bytes": content, "path": None} for content in FILES]
    table = pa.table({"image": structs if images is None else images, "label": LABELS if labels is None else labels})
    if names is not None:
        features = {"image": {"_type": "Image"}, "label": {"names": names, "_type": "ClassLabel"}}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def examples_of(spec: TrainJobSpec) -> tuple[Fitted, np.ndarray, np.ndarray]:
    """The fitted data, and the pixels and classes of all rows in a fixed order."""
    fitted = fit(spec)
    sets = prepare_examples(spec, fitted)
    values = np.concatenate([each.values.reshape(-1, 30) for each in sets.values()])
    labels = np.concatenate([labels_of(each) for each in sets.values()])
    order = np.lexsort(values.T)
    return fitted, values[order], labels[order]


def assert_the_images(spec: TrainJobSpec) -> Fitted:
    fitted, values, labels = examples_of(spec)
    expected = np.array(IMAGES).reshape(-1, 30)
    order = np.lexsort(expected.T)
    assert np.array_equal(values, expected[order])
    assert [fitted.preprocessor.target.classes[label] for label in labels] == [LABELS[index] for index in order]
    return fitted


def rows_of(spec: TrainJobSpec) -> Iterator[Rows]:
    assert spec.dataset is not None
    for part in source_parts(spec, spec.dataset.train):
        yield from part.read(["image", "label"])


@pytest.mark.parametrize(
    "images",
    [
        [{"bytes": content, "path": "0.png"} for content in FILES],
        pa.array(FILES, pa.binary()),
        pa.array(FILES, pa.large_binary()),
        pa.array(FILES, pa.binary()).dictionary_encode(),
        pa.array([{"bytes": content} for content in FILES], pa.struct({"bytes": pa.large_binary()})),
    ],
    ids=["struct", "binary", "large_binary", "dictionary", "large struct"],
)
def test_images_in_parquet(tmp_path: Path, images: Any) -> None:
    assert_the_images(image_spec(write_hub(tmp_path / "t.parquet", images)))


def test_numbers_of_the_hub_have_their_names(tmp_path: Path) -> None:
    numbers = [("cat", "dog").index(label) for label in LABELS]
    spec = image_spec(write_hub(tmp_path / "t.parquet", labels=numbers, names=["cat", "dog"]))
    with pytest.warns(Notice, match='have names in the Parquet files, such as "cat" for 0: these are the classes'):
        assert_the_images(spec)


def test_numbers_without_names_are_the_classes(tmp_path: Path) -> None:
    spec = image_spec(write_hub(tmp_path / "t.parquet", labels=[7 + index % 2 for index in range(40)]))
    assert fit(spec).preprocessor.target.classes == ["7", "8"]


def test_a_number_without_a_name_is_refused(tmp_path: Path) -> None:
    labels = [index % 2 for index in range(39)] + [-1]
    spec = image_spec(write_hub(tmp_path / "t.parquet", labels=labels, names=["cat", "dog"]))
    with (
        pytest.warns(Notice, match="these are the classes"),
        pytest.raises(DataError, match=r"t\.parquet, row 40: the label is not one of the numbers 0 to 1 .*: it is -1"),
    ):
        fit(spec)


def test_shards_are_read_one_after_the_other(tmp_path: Path) -> None:
    structs = [{"bytes": content, "path": None} for content in FILES]
    write_hub(tmp_path / "data/train-00000-of-00002.parquet", structs[:15], LABELS[:15])
    write_hub(tmp_path / "data/train-00001-of-00002.parquet", structs[15:], LABELS[15:])
    assert_the_images(image_spec(tmp_path / "data"))
    assert_same_examples(image_spec(tmp_path / "data"), image_spec(write_hub(tmp_path / "t.parquet")))


def test_rows_of_parquet_are_read_few_at_a_time(tmp_path: Path) -> None:
    path = write_hub(tmp_path / "t.parquet", FILES * 250, LABELS * 250)
    assert max(len(rows.table) for rows in rows_of(image_spec(path))) <= 64
    assert sum(len(rows.table) for rows in rows_of(image_spec(path))) == 10_000


def test_a_struct_may_hold_the_path_alone(tmp_path: Path) -> None:
    names = write_files(tmp_path / "files")
    structs = [{"bytes": None, "path": f"files/{name}"} for name in names]
    assert_the_images(image_spec(write_hub(tmp_path / "t.parquet", structs)))


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_of_paths(tmp_path: Path, ending: str) -> None:
    names = write_files(tmp_path / "files")
    paths = [str(tmp_path / "files" / name) if name == "0.png" else f"files/../files/{name}" for name in names]
    rows = [{"photo": path, "species": label} for path, label in zip(paths, LABELS, strict=True)]
    table = tmp_path / f"t.{ending}"
    if ending == "tsv":
        table.write_text("photo\tspecies\n" + "".join(f"{row['photo']}\t{row['species']}\n" for row in rows))
    elif ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), table)
    else:
        (write_csv if ending == "csv" else write_jsonl)(table, rows)
    assert_the_images(image_spec(table, label="species"))
    assert_the_images(image_spec(table, image="photo", label="species"))
    place = next(rows_of(image_spec(table, label="species"))).where(2)
    unit = "line" if ending == "jsonl" else "row"
    assert (place.file, place.number) == (str(table), 3)
    assert place == f"{table}, {unit} 3 (files/../files/2.png)"


def test_a_folder_with_its_metadata(tmp_path: Path) -> None:
    folder = tmp_path / "train"
    rows = [{"file_name": name, "label": label} for name, label in zip(write_files(folder), LABELS, strict=True)]
    write_csv(folder / "metadata.csv", rows)
    fitted = assert_the_images(image_spec(folder))
    assert fitted.sources["train"].files == 41
    write_files(tmp_path / "test")
    write_csv(tmp_path / "test/metadata.csv", [{**rows[0], "file_name": ""}, *rows[3:]])
    with pytest.warns(Notice, match=r"test: 3 of 40 images are left out because no row names them: .*/test/0\.png, "):
        source_parts(image_spec(tmp_path / "test"), Source(uri=str(tmp_path / "test")))
    dataset = image_spec(tmp_path).dataset
    assert dataset is not None
    with pytest.warns(Notice, match="train/ and test/ taken as the train and test rows"):
        assert with_split_folders(dataset, None)[0].train.uri == str(folder)


def test_a_table_beside_its_images(tmp_path: Path) -> None:
    write_csv(tmp_path / "labels.csv", [{"file": name, "label": "a"} for name in write_files(tmp_path)])
    with pytest.raises(
        DataError, match=r"several formats \(csv, images\).* the table that names .* such as labels.csv"
    ):
        fit(image_spec(tmp_path))


def test_images_of_all_kinds_become_the_same_pixels(tmp_path: Path) -> None:
    """EXIF, transparency and 16 bits, as in a folder."""
    stored = Image.fromarray(random_images(1, (6, 5, 3))[0])
    exif = Image.Exif()
    exif[0x0112] = 6
    for name, image in (
        ("a/turned.png", stored),
        ("a/clear.png", Image.merge("RGBA", [*stored.split(), Image.new("L", stored.size, 0)])),
        ("b/deep.png", Image.fromarray((np.arange(30, dtype=np.uint16) * 2000).reshape(6, 5))),
        ("b/plain.png", stored.transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
    ):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, exif=exif if "turned" in name else None)
    files = sorted((tmp_path / "folder").glob("*/*.png"))
    labels = [path.parent.name for path in files]
    hub = write_hub(tmp_path / "t.parquet", [path.read_bytes() for path in files], labels)
    table = write_csv(
        tmp_path / "t.csv",
        [{"path": f"folder/{path.parent.name}/{path.name}", "label": path.parent.name} for path in files],
    )

    def pixels(uri: Path) -> bytes:
        spec = image_spec(uri, (6, 6), validation={"uri": str(uri)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Notice)
            values = prepare_examples(spec, fit(spec))["train"].values.reshape(4, -1)
        return values[np.lexsort(values.T)].tobytes()

    assert pixels(tmp_path / "folder") == pixels(hub) == pixels(table)


@pytest.mark.parametrize(
    ("columns", "dataset", "message"),
    [
        ({"id": ["1"], "label": ["a"]}, {}, "none of the columns looks like images or their paths; it has id, label"),
        ({"a": [b"x"], "b": [b"x"], "label": ["a"]}, {}, r"a and b could each be the image.*`dataset: {image: a}`"),
        ({"image": [b"x"], "species": ["a"]}, {}, r"none of the columns looks like the label; it has image, species"),
        (
            {"image": [b"x"], "class": ["a"], "target": ["b"]},
            {},
            r"class and target could each be the label.*label: class",
        ),
        ({"image": [b"x"], "label": ["a"]}, {"image": "imge"}, r'no column "imge"; .*did you mean image\?'),
        ({"image": [b"x"], "label": ["a"]}, {"label": "lable"}, r'no column "lable"; .*did you mean label\?'),
        ({"image": [[{"bytes": b"x"}]], "label": ["a"]}, {"image": "image"}, "each row has one image"),
        ({"image": [1.5], "label": ["a"]}, {"image": "image"}, "contains double, neither images"),
        ({"image": [None, b"x"], "label": ["a", "b"]}, {}, r"t\.parquet, row 1: there is no image in this row"),
        (
            {"image": [b"x", b"y"], "label": ["a", "b"]},
            {},
            r"2 rows: not a valid image file: .*t\.parquet, row 1: .*row 2: ",
        ),
        ({"image": ["https://a.b/c.png", "x"], "label": ["a", "b"]}, {}, r"row 1 .*has the scheme https://"),
        ({"image": ["iVBORw0KGgo" * 999], "label": ["a"]}, {}, r"row 1: .*base64 images are not supported"),
        ({"image": ["/9j/4AAQSkZJRgABAQ"], "label": ["a"]}, {}, r"row 1 .*base64 images are not supported"),
        (
            {"image": ["no.png", "x"], "label": ["a", "b"]},
            {},
            r"2 rows: there is no such file; paths are .*, row 1 \(no\.png\); row 2 \(x\)\n",
        ),
        ({"image": ["a\\no.png", "b\\x"], "label": ["a", "b"]}, {}, r"2 rows: .* have / between folders, not \\: "),
        ({"image": ["", "x"], "label": ["a", "b"]}, {}, r"row 1: there is no image in this row"),
        (
            {"image": [{"bytes": None, "path": "no.png"}, {"bytes": b"x", "path": None}], "label": ["a", "b"]},
            {},
            r"row 1 \(no\.png\): there is no file .*/no\.png: correct",
        ),
        ({"image": pa.array([], pa.binary()), "label": pa.array([], pa.string())}, {}, "has no rows"),
        ({"image": pa.array([], pa.string()), "label": pa.array([], pa.string())}, {}, "has no rows"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, columns: dict[str, Any], dataset: dict[str, Any], message: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=message):
        fit(image_spec(tmp_path / "t.parquet", **dataset))


def test_bad_rows_are_left_out(tmp_path: Path) -> None:
    """Missing and empty paths, damaged images and numbers without a name, and a line that is no row."""
    names = [*write_files(tmp_path), "missing.png", "", "broken.png"]
    (tmp_path / "broken.png").write_bytes(b"x")
    lines = [f"{name},{label}" for name, label in zip(names, [*LABELS, "cat", "cat", "cat"], strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["image,label", *lines, "one,two,three"]) + "\n")
    structs = [{"bytes": content, "path": None} for content in FILES]
    numbers = [("cat", "dog").index(label) for label in LABELS]
    more = [
        {"bytes": None, "path": "missing.png"},
        {"bytes": None, "path": None},
        structs[0],
        {"bytes": b"x", "path": ""},
    ]
    hub = write_hub(tmp_path / "t.parquet", structs + more, [*numbers, 0, 0, -1, 0], ["cat", "dog"])
    for table in (tmp_path / "t.csv", hub):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Notice)
            fitted = assert_the_images(image_spec(table, onBadRows="drop"))
        assert fitted.profile is not None
        assert sum(each.rows for each in fitted.profile.sets["train"].dropped) == 4


def test_same_image_under_two_labels(tmp_path: Path) -> None:
    names = [*write_files(tmp_path), "0.png", "1.png"]
    labels = [*LABELS, "dog", "dog"]
    rows = [{"image": name, "label": label} for name, label in zip(names, labels, strict=True)]
    fitted = fit(image_spec(write_csv(tmp_path / "t.csv", rows)))
    assert fitted.profile is not None
    assert fitted.profile.sets["train"].rows + fitted.profile.sets["validation"].rows == 42


def test_ten_thousand_rows_hold_few_images_at_once(tmp_path: Path) -> None:
    write_files(tmp_path)
    rows = [{"image": f"{index % 40}.png", "label": LABELS[index % 40]} for index in range(10_000)]
    spec = image_spec(write_csv(tmp_path / "t.csv", rows))
    tables = [len(each.table) for each in rows_of(spec)]
    assert sum(tables) == 10_000
    assert max(tables) <= 64


def test_folder_names_that_are_columns(tmp_path: Path) -> None:
    structs = [{"bytes": content, "path": None} for content in FILES]
    for label in ("cat", "dog"):
        chosen = [struct for struct, own in zip(structs, LABELS, strict=True) if own == label]
        path = tmp_path / "t" / f"label={label}" / "part-0.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"image": chosen}), path)
    assert_the_images(image_spec(tmp_path / "t"))


def test_a_folder_of_classes_needs_no_columns(tmp_path: Path) -> None:
    write_images(
        tmp_path / "folder",
        {label: [IMAGES[i] for i in range(40) if LABELS[i] == label] for label in ["cat", "dog"]},
    )
    assert_the_images(image_spec(tmp_path / "folder"))
