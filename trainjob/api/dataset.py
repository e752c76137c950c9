"""`spec.dataset`: the training, validation and test data."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trainjob.schema.base import OneOf, StrictModel
from trainjob.schema.expressions import given, value
from trainjob.schema.fields import UniqueList
from trainjob.schema.rules import FieldRule, RuledModel
from trainjob.schema.uris import DataURI

MAX_URIS = 1000
DataURIs = Annotated[UniqueList[DataURI], Field(max_length=MAX_URIS)]


class Source(OneOf):
    """The location and format of rows."""

    choices: ClassVar[tuple[str, ...]] = ("uri", "uris")

    uri: DataURI | None = None
    """A file, a folder or a glob: a path (relative to this YAML), `s3://`, `gs://`, `https://`, or
    `hf://datasets/OWNER/NAME` of the Hugging Face hub, with `@REVISION` after the name for a branch, tag or commit."""
    uris: DataURIs | None = None
    """Several of these instead of `uri`, in any order; no file may be in two of them."""
    format: Literal["csv", "jsonl", "parquet", "conll", "images", "mnist"] | None = None
    """csv (also tab-separated), jsonl (one JSON object per line, or one array of objects), parquet, conll (a token and
    its tag per line; the columns are `tokens` and `tags`), images (one folder per class) or mnist (IDX files); by
    default derived from the file extension. csv, jsonl and conll may be compressed (.gz, .bz2, .zst, or .zip with one
    file). Folders named `name=value` become columns of the tables in them."""

    @property
    def all_uris(self) -> list[str]:
        """The URIs in reading order. They are sorted by name, like files in a folder, because Kubernetes ignores
        changes of the order of `uris`."""
        return sorted(self.uris or [str(self.uri)])


class Validation(OneOf):
    """The data for validation after each epoch."""

    fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Fraction of the training rows to set aside, stratified by label and seeded by `training.seed`."""
    uri: DataURI | None = None
    """A separate set, in the format of the training rows."""
    uris: DataURIs | None = None
    """Several of these instead of `uri`, in any order; no file may be in two of them."""


class Cleaning(StrictModel):
    """Cleaning of each text before tokenization. Control characters are always removed, and white space is always
    collapsed."""

    lowercase: bool = False
    """Convert the text to lower case; a pretrained uncased tokenizer does this itself."""
    remove_urls: Annotated[bool, Field(alias="removeURLs")] = False
    """Remove http(s) and www URLs."""
    remove_html: Annotated[bool, Field(alias="removeHTML")] = False
    """Remove HTML tags and resolve entities."""


ColumnType = Literal["number", "category", "date", "flag", "text", "ignore"]
ColumnNames = UniqueList[Annotated[str, Field(min_length=1)]]


class Dataset(RuledModel):
    """The training, validation and test data."""

    train: Source
    """The training rows. If the folder contains `train/`, `valid/` and `test/`, they are used for the sets that are not
    given here."""
    validation: Validation = Validation(fraction=0.2)
    """The data for validation after each epoch."""
    test: Source | None = None
    """The test set, scored once at the end with the best checkpoint."""
    unlabelled: Source | None = None
    """Additional training rows, labeled only by the teacher of `training.distillation`."""
    text: ColumnNames | None = None
    """Columns with the text, joined by a space; for text classifiers and language models."""
    text_pair: ColumnNames | None = None
    """Columns with a second text, such as an answer or a hypothesis; the model reads both texts of a row as a pair."""
    text_negative: ColumnNames | None = None
    """Columns with a third text, which is similar to the first but does not belong to it: a hard negative, for text
    embedders."""
    prompt: Annotated[str, Field(min_length=1)] | None = None
    """Column with a language model's prompt, which is excluded from the loss; needs `completion`."""
    completion: Annotated[str, Field(min_length=1)] | None = None
    """Column with the completion of the prompt, which a language model learns."""
    messages: Annotated[str, Field(min_length=1)] | None = None
    """Column with conversations: lists of objects with `role` and `content`. A language model learns the messages of
    the role `assistant`. The columns `tools` and `parallel_tool_calls` are used, too, if they exist."""
    image: Annotated[str, Field(min_length=1)] | None = None
    """Column of a table with images, or with their paths relative to the table's folder; for image classifiers.
    Detected by default."""
    features: ColumnNames | None = None
    """Columns that a model of tables reads; all but the label by default."""
    columns: dict[str, ColumnType] | None = None
    """Types of columns that a model of tables reads, by name; the others' are found in the training rows. number, date
    (ISO 8601), flag (true or false, yes or no), category, or text, which the model's text encoder reads; ignore leaves
    a column out."""
    label: Annotated[str, Field(min_length=1)] | None = None
    """Column with the label; detected by default for images in a table. For folders of images, the labels are the
    folder names; for IDX files, the IDX labels."""
    labels: ColumnNames | None = None
    """Several labels a row, in place of `label`: a column for each. For text and image classifiers, columns of 0 and 1;
    cells of `label` may also list labels. For regressors, columns of numbers."""
    cleaning: Cleaning = Cleaning()
    """Cleaning of each text before tokenization; for text classifiers."""
    on_bad_rows: Literal["fail", "drop"] = "fail"
    """The handling of unusable rows: an empty or unknown label, a damaged image, a malformed line, a conversation
    without anything to learn, or a class with too few rows. fail reports all of them before training; drop skips them,
    in every set, and counts them in the report."""
    loader: Literal["auto", "rayData", "dataLoader"] = "auto"
    """How rows reach the workers. dataLoader keeps them in memory and, on one machine, trains in local processes
    without Ray; rayData prepares them with Ray Data and streams sets that do not fit in memory. auto is dataLoader on
    one machine if the prepared rows take at most half of the free memory, and rayData otherwise, on a cluster and for
    a search; the run keeps what was chosen."""

    @property
    def held_out_set(self) -> Literal["test", "validation"]:
        """The set whose rows judge the trained model: test, or validation if there is no test set."""
        return "validation" if self.test is None else "test"

    @classmethod
    def rules(cls) -> tuple[FieldRule, ...]:
        return _RULES


def _differs_from(field: str, other: str) -> FieldRule:
    differs = ~value(field).equals(value(other))
    return FieldRule(field, f"must not be the same column as {other}", ~given(field) | ~given(other) | differs)


def _shares_no_column_with(field: str, other: str) -> FieldRule:
    disjoint = value(field).is_disjoint_from(value(other))

    def shared(dataset: Dataset) -> str:
        return ", ".join(name for name in value(field).of(dataset) if name in value(other).of(dataset))

    message = f"must not name a column that is in {other}"
    return FieldRule(field, message, ~given(field) | ~given(other) | disjoint, shared)


def _excludes_label(field: str) -> FieldRule:
    excludes = ~value(field).contains(value("label"))
    message = "must not include the label's column: a model that reads the answer learns nothing"
    return FieldRule(field, message, ~given(field) | ~given("label") | excludes, value("label").of)


_HAS_PROMPTS = given("prompt") | given("completion")
_RULES = (
    FieldRule("labels", "cannot be set together with label", ~given("labels") | ~given("label")),
    *map(_excludes_label, ("text", "textPair", "features", "columns")),
    _shares_no_column_with("textPair", "text"),
    _shares_no_column_with("textNegative", "text"),
    _shares_no_column_with("textNegative", "textPair"),
    FieldRule(
        "textNegative",
        "cannot be set together with label: it says by itself what is not similar",
        ~given("textNegative") | ~given("label"),
    ),
    _differs_from("image", "label"),
    FieldRule("completion", "prompt and completion must be set together", given("prompt").equals(given("completion"))),
    _differs_from("completion", "prompt"),
    FieldRule(
        "messages",
        "cannot be set together with text, prompt and completion",
        ~given("messages") | ~(given("text") | _HAS_PROMPTS),
    ),
    FieldRule("text", "cannot be set together with prompt and completion", ~given("text") | ~_HAS_PROMPTS),
)
