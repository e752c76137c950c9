"""Files with rows, sound or not, as programs and accidents leave them."""

import csv
import io
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from PIL import Image

CLASSES = ("animal", "plant")
ROWS = [(f"row {number} is of a {CLASSES[number % 2]}", CLASSES[number % 2], str(number)) for number in range(12)]
ODD_TEXTS = st.sampled_from(
    ["", " ", "NULL", "nan", "1e5", "007", "a,b", "a;b", 'a"b', '"', "a\nb", "a\r\nb", "a\rb", "\x00"]
)
TEXTS = ODD_TEXTS | st.sampled_from(["é", "\ufeff", "\u2028", "\x85", "\N{ROCKET}", "w" * 3000]) | st.text(max_size=4)
BYTES = st.sampled_from(
    [
        b"",
        b"\x00",
        b"\xff",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b'"',
        b",",
        b";",
        b"\t",
        b"\\",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
    ]
) | st.binary(max_size=4)


@st.composite
def corrupted(draw: st.DrawFn, content: bytes) -> bytes:
    """Corrupts the content in up to three places."""
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3]))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from([0, 1, 4, 100, 10**9])))
        match draw(st.sampled_from(["insert", "replace", "cut", "double", "flip"])):
            case "insert":
                content = content[:start] + draw(BYTES) + content[start:]
            case "replace":
                content = content[:start] + draw(BYTES) + content[end:]
            case "cut":
                content = content[:start] + content[end:]
            case "double":
                content = content[:end] + content[start:]
            case _:
                content = (
                    content[:start]
                    + bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in content[start : start + 1])
                    + content[start + 1 :]
                )
    return content


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    rows: list[tuple[str, ...]] = list(ROWS)
    for _ in range(draw(st.integers(0, 2))):
        label = draw(st.sampled_from(CLASSES) | TEXTS)
        rows.insert(draw(st.integers(0, len(rows))), (draw(TEXTS), label, draw(TEXTS)))
    if draw(st.integers(0, 5)) == 0:  # of another width
        rows.insert(draw(st.integers(0, len(rows))), tuple(draw(st.lists(TEXTS, max_size=5))))
    names = draw(
        st.sampled_from(
            [("text", "label", "other")] * 6
            + [("text", "label", "text"), ("text", "label", ""), ("label", "text", "label")]
        )
    )
    file = io.StringIO()
    writer = csv.writer(
        file,
        delimiter=draw(st.sampled_from(",,,,,,;;\t\t|")),
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        lineterminator=draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])),
    )
    writer.writerow(names)
    writer.writerows(rows)
    text = file.getvalue() if draw(st.booleans()) else file.getvalue().rstrip()
    encoding = draw(
        st.sampled_from(["utf-8"] * 12 + ["utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252", "utf-32"])
    )
    return draw(corrupted(text.encode(encoding, "replace")))


JSON_VALUES: st.SearchStrategy[Any] = TEXTS | st.sampled_from(
    [None, True, 0, -1, 2**63, 2**70, 1.5, 1e308, float("nan"), float("inf"), [], ["a"], {}, {"a": 1}, "\ud800", [[{}]]]
)


@st.composite
def jsonl_files(draw: st.DrawFn) -> bytes:
    rows: list[Any] = [{"text": text, "label": label, "other": other} for text, label, other in ROWS]
    for _ in range(draw(st.integers(0, 2))):
        names = st.sampled_from(["text", "label", "other", "", "more"])
        row: Any = {"text": "a", "label": draw(st.sampled_from(CLASSES)), draw(names | TEXTS): draw(JSON_VALUES)}
        row = draw(st.just(row) | st.dictionaries(names, JSON_VALUES, max_size=4) | JSON_VALUES)
        rows.insert(draw(st.integers(0, len(rows))), row)
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\n\n", "\r"]))
    text = end.join(json.dumps(row, ensure_ascii=draw(st.booleans())) for row in rows) + draw(
        st.sampled_from(["", end])
    )
    encoding = draw(st.sampled_from(["utf-8"] * 9 + ["utf-8-sig", "utf-16", "latin-1"]))
    return draw(corrupted(text.encode(encoding, "replace")))


def _columns() -> dict[str, pa.Array]:
    """Twelve values of each type that Parquet has."""
    numbers, texts = list(range(12)), [text for text, _, _ in ROWS]
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    halves = pa.array(np.array(numbers, np.float16))
    return {
        "text": pa.array(texts),
        "large": pa.array(texts, pa.large_string()),
        "view": pa.array(texts, pa.string_view()),
        "binary": pa.array([text.encode() for text in texts]),
        "no text": pa.array([b"\xff\xfe"] * 12),
        "fixed binary": pa.array([b"abc"] * 12, pa.binary(3)),
        "binary view": pa.array([b"abc"] * 12, pa.binary_view()),
        "dictionary": pa.array(texts).dictionary_encode(),
        "numbers' dictionary": pa.array(numbers).dictionary_encode(),
        "dictionary with nulls": pa.array([None, "a"] * 6).dictionary_encode(),
        "classes": pa.array([label for _, label, _ in ROWS]),
        "classes' dictionary": pa.array([label for _, label, _ in ROWS]).dictionary_encode(),
        "int": pa.array(numbers),
        "bytes": pa.array(numbers, pa.uint8()),
        "half": halves,
        "float": pa.array([*numbers[3:], float("nan"), float("inf"), -0.0]),
        "bool": pa.array([True, False] * 6),
        "decimal": pa.array([Decimal(number) / 4 for number in numbers], pa.decimal128(10, 2)),
        "large decimal": pa.array([Decimal(number) for number in numbers], pa.decimal256(50, 2)),
        "date": pa.array([date(2026, 1, 1)] * 12),
        "time": pa.array([time(12, 30)] * 12),
        "moment": pa.array([moment] * 12),
        "nanoseconds": pa.array([moment.replace(tzinfo=None)] * 12, pa.timestamp("ns")),
        "other zone": pa.array([moment] * 12, pa.timestamp("us", "Europe/Berlin")),
        "no zone": pa.array([moment] * 12, pa.timestamp("us", "Nowhere/None")),
        "duration": pa.array([timedelta(seconds=1)] * 12),
        "null": pa.nulls(12),
        "nulls": pa.array(["a", None] * 6),
        "list": pa.array([["a"]] * 12),
        "empty lists": pa.array([[]] * 12, pa.list_(pa.string())),
        "fixed list": pa.array([[1, 2]] * 12, pa.list_(pa.int8(), 2)),
        "struct": pa.array([{"a": 1}] * 12),
        "map": pa.array([[("a", 1)]] * 12, pa.map_(pa.string(), pa.int64())),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * 12, pa.binary(16))),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"] * 12)),
        "tensor": pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.uint8(), (2,)), pa.array([[1, 2]] * 12, pa.list_(pa.uint8(), 2))
        ),
    }


COLUMNS = _columns()


@st.composite
def parquet_files(draw: st.DrawFn) -> bytes:
    kinds = st.sampled_from(sorted(COLUMNS))
    columns = {
        "text": COLUMNS[draw(st.just("text") | kinds)],
        "label": COLUMNS[draw(st.sampled_from(["classes", "classes' dictionary"]) | kinds)],
        draw(st.sampled_from(["other", "", "image", "prediction"])): COLUMNS[draw(kinds)],
    }
    file = io.BytesIO()
    pq.write_table(
        pa.table(columns),
        file,
        row_group_size=draw(st.sampled_from([None, 5])),
        compression=draw(st.sampled_from(["none", "snappy", "zstd"])),
        store_schema=draw(st.booleans()),
    )
    return draw(corrupted(file.getvalue()) if draw(st.booleans()) else st.just(file.getvalue()))


TABLES = st.one_of(
    csv_files().map(lambda content: ("rows.csv", content)),
    jsonl_files().map(lambda content: ("rows.jsonl", content)),
    parquet_files().map(lambda content: ("rows.parquet", content)),
)
"""Names and contents of files."""

MODES = {"PNG": ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"], "TIFF": ["L", "RGB", "CMYK", "F", "I", "LAB", "YCbCr"]}
FORMATS = {
    "JPEG": ["L", "RGB", "CMYK"],
    "GIF": ["L", "P"],
    "BMP": ["1", "L", "RGB"],
    "WEBP": ["RGB", "RGBA"],
    "PPM": ["L", "RGB"],
    "AVIF": ["RGB"],
    **MODES,
}


@st.composite
def image_files(draw: st.DrawFn) -> tuple[str, bytes]:
    """Name and content of an image file."""
    kind = draw(st.sampled_from(sorted(FORMATS)))
    size = draw(st.sampled_from([(6, 5), (6, 5), (1, 1), (40, 30)]))
    image = Image.new(draw(st.sampled_from(FORMATS[kind])), size)
    file = io.BytesIO()
    image.save(file, kind)
    return f"odd.{kind.lower()}", draw(corrupted(file.getvalue()))


@st.composite
def idx_files(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Contents of a file of images and of one of their labels, in MNIST's format."""
    shape = draw(st.sampled_from([(5, 6), (5, 6), (1, 1), (5, 6, 3), (5, 6, 1), (5, 6, 2), (0, 6), (5, 0)]))
    images = np.arange(12 * int(np.prod(shape)), dtype=np.uint8).reshape(12, *shape)
    labels = np.arange(12, dtype=np.uint8) % 2
    found = [
        bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
        for array in (images, labels)
    ]
    return draw(corrupted(found[0])), draw(corrupted(found[1]))
