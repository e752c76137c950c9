"""The first pass over the rows: classes, split and preprocessor, fitted on the training part alone."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from trainjob.api import ImageClassifier, Source, TextClassifier, TrainJobSpec
from trainjob.data.image import ImagePreprocessor, channels_of, decoded, image_contents, images_of, wrong_size
from trainjob.data.image_files import IDXFiles, ImageFiles
from trainjob.data.labels import label_indices
from trainjob.data.preprocessor import Preprocessor, load_preprocessor
from trainjob.data.rows import Part, Rows
from trainjob.data.source import parts
from trainjob.data.split import Split, hashes
from trainjob.data.survey import Sample, Survey, take_survey
from trainjob.data.text import TextPreprocessor, joined_texts, pretrained_tokenizer, text_contents, train_wordpiece
from trainjob.data.cleaning import clean
from trainjob.errors import DataError
from trainjob.storage import Folder

SPLIT_FILE = "split.json"
TOKENIZER_ROWS = 100_000
STATISTICS_ROWS = 10_000
LENGTH_ROWS = 1_000
CHARACTERS_PER_TOKEN = 16
"""What lies beyond this many for each token of `maxLength` does not reach the tokenizer's training."""


@dataclass(frozen=True)
class Fitted:
    """What every later pass over the rows needs. Picklable."""

    preprocessor: Preprocessor
    label: str
    """Column of the label."""
    split: Split | None
    """None where the validation rows have a URI of their own."""
    rows: dict[str, int]
    """Rows of `train`, `validation` and, where there is one, `test`."""

    def save(self, folder: Folder) -> None:
        """Write the preprocessor's files, then split.json: where that exists, all is there."""
        with tempfile.TemporaryDirectory() as temporary:
            self.preprocessor.save(Path(temporary))
            folder.upload(Path(temporary), "")
        state = {"label": self.label, "rows": self.rows, "split": self.split and asdict(self.split)}
        folder.write(SPLIT_FILE, json.dumps(state, indent=1).encode())

    @classmethod
    def load(cls, folder: Folder) -> "Fitted":
        with tempfile.TemporaryDirectory() as temporary:
            folder.download("", Path(temporary))
            state = json.loads((Path(temporary) / SPLIT_FILE).read_bytes())
            preprocessor = load_preprocessor(Path(temporary))
        return cls(preprocessor, state["label"], state["split"] and Split(**state["split"]), state["rows"])


def fit(spec: TrainJobSpec) -> Fitted:
    """Read every set once, keeping 16 bytes a row and a sample of bounded size, and fit the preprocessor.

    Raises DataError for rows that cannot be used, StorageError where they cannot be reached.
    """
    sets = {name: parts_of(spec, source) for name, source in sources_of(spec).items()}
    if spec.model.text_classifier is not None:
        label, (survey, preprocessor) = spec.dataset.label, _fit_text(spec, spec.model.text_classifier, sets["train"])
    else:
        label, (survey, preprocessor) = "label", _fit_images(spec, spec.model.image_classifier, sets["train"])
    rows = {"train": sum(survey.class_counts), "validation": int(np.sum(~survey.is_training))}
    rows |= {name: _count(others, label, survey.classes) for name, others in sets.items() if name != "train"}
    return Fitted(preprocessor, label, survey.split, rows)


def sources_of(spec: TrainJobSpec) -> dict[str, Source]:
    """The sources of `train`, of `validation` where it is not a share of train, and of `test` where there is one."""
    dataset = spec.dataset
    if dataset is None:
        return {}
    sources = {"train": dataset.train}
    if dataset.validation.uri is not None:
        sources["validation"] = Source(uri=dataset.validation.uri, format=dataset.train.format)
    if dataset.test is not None:
        sources["test"] = dataset.test
    return sources


def parts_of(spec: TrainJobSpec, source: Source) -> list[Part]:
    """The parts of a source. Raises DataError where they are not of the kind that the model takes."""
    found = parts(source, spec.storage.endpoint if spec.storage else None)
    holds_images = isinstance(found[0], ImageFiles | IDXFiles)
    if spec.model.text_classifier is not None and holds_images:
        raise DataError(f"{source.uri} holds images, but model.textClassifier needs csv, jsonl or parquet")
    if spec.model.image_classifier is not None and not holds_images:
        raise DataError(f"{source.uri} is a table, but model.imageClassifier needs a folder of images or IDX files")
    return found


def read_all(some: Iterable[Part], columns: Sequence[str] | None) -> Iterator[Rows]:
    for part in some:
        yield from part.read(columns)


def _fit_text(spec: TrainJobSpec, model: TextClassifier, train: list[Part]) -> tuple[Survey, TextPreprocessor]:
    columns, cleaning, seed = spec.dataset.text, spec.dataset.cleaning, spec.training.seed
    longest = CHARACTERS_PER_TOKEN * model.max_length
    sample = Sample[str](TOKENIZER_ROWS if model.encoder else LENGTH_ROWS)

    def visit(rows: Rows) -> np.ndarray:
        texts = joined_texts(rows.table, columns, rows.where)
        row_hashes = hashes(text_contents(texts), seed)
        sample.add(row_hashes, lambda index: clean(texts[index][:longest], cleaning))
        return row_hashes

    survey = _survey(spec, train, [*columns, spec.dataset.label], spec.dataset.label, visit)
    texts = sample.items(survey.is_training)
    if model.encoder is not None:
        tokenizer, config = train_wordpiece(texts, model.encoder.vocabulary_size, model.max_length)
    else:
        tokenizer, config = pretrained_tokenizer(model.pretrained, model.max_length)
    lengths = [len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts[:LENGTH_ROWS])]
    preprocessor = TextPreprocessor(
        survey.classes,
        survey.class_counts,
        columns,
        cleaning,
        model.max_length,
        float(np.mean(lengths)),
        tokenizer,
        config,
    )
    return survey, preprocessor


def _fit_images(spec: TrainJobSpec, model: ImageClassifier, train: list[Part]) -> tuple[Survey, ImagePreprocessor]:
    size = (model.size.width, model.size.height) if model.size else None
    sample = Sample[np.ndarray](STATISTICS_ROWS)
    channels: list[int] = []

    def visit(rows: Rows) -> np.ndarray:
        nonlocal size
        images = list(images_of(rows.table, rows.where))
        for index, image in enumerate(images):
            size = size or image.size
            if model.size is None and image.size != size:
                raise DataError(wrong_size(rows.where(index), image.size, size))
        channels.extend(map(channels_of, images))
        row_hashes = hashes(image_contents(rows.table), spec.training.seed)
        sample.add(row_hashes, lambda index: _moments(decoded(images[index], 3, rows.where(index))))
        return row_hashes

    survey = _survey(spec, train, ["image", "label"], "label", visit)
    depth = int(np.max(np.array(channels)[survey.is_training]))
    mean, square = np.mean(sample.items(survey.is_training), axis=0)[:, :depth]
    std = np.sqrt(np.maximum(square - mean**2, 0))
    std[std == 0] = 1
    width, height = size
    preprocessor = ImagePreprocessor(
        survey.classes, survey.class_counts, height, width, depth, mean.tolist(), std.tolist(), model.size is not None
    )
    return survey, preprocessor


def _survey(spec: TrainJobSpec, train: list[Part], columns: list[str], label: str, visit) -> Survey:
    dataset = spec.dataset
    survey = take_survey(read_all(train, columns), label, visit, dataset.validation.fraction, spec.training.seed)
    if len(survey.labels) == 0:
        raise DataError(f"{dataset.train.uri} holds no rows")
    if len(survey.classes) == 1:
        raise DataError(
            f'{dataset.train.uri}: every row has the label "{survey.classes[0]}"; there must be two at least'
        )
    return survey


def _count(some: list[Part], label: str, classes: list[str]) -> int:
    """Rows with a known label. Raises DataError where one has not."""
    rows = sum(len(label_indices(rows, label, classes)) for rows in read_all(some, [label]))
    if rows == 0:
        raise DataError(f"{some[0].uri} holds no rows")
    return rows


def _moments(image: Image.Image) -> np.ndarray:
    """Mean and mean square of each channel in 0 to 1, float64 [2, 3]."""
    pixels = np.asarray(image, np.float32).reshape(-1, 3) / 255
    return np.stack([pixels.mean(0, dtype=np.float64), np.square(pixels).mean(0, dtype=np.float64)])
