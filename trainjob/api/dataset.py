"""`spec.dataset`: the training, validation and test data."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from trainjob.redaction import without_secrets
from trainjob.schema.base import OneOf, StrictModel, refuse_conflicts
from trainjob.schema.uris import DataURI

Unique = Field(json_schema_extra={"uniqueItems": True})
MAX_URIS = 1000


def _refuse_duplicates(uris: list[str]) -> list[str]:
    if twice := next((uri for uri, count in Counter(uris).items() if count > 1), None):
        raise PydanticCustomError("twice", "names {uri} twice", {"uri": without_secrets(twice)})
    return uris


DataURIs = Annotated[
    list[DataURI], Unique, Field(min_length=1, max_length=MAX_URIS), AfterValidator(_refuse_duplicates)
]


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
Columns = Annotated[list[Annotated[str, Field(min_length=1)]], Unique, Field(min_length=1)]


class Dataset(StrictModel):
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
    text: Columns | None = None
    """Columns with the text, joined by a space; for text classifiers and language models."""
    text_pair: Columns | None = None
    """Columns with a second text, such as an answer or a hypothesis; the model reads both texts of a row as a pair."""
    text_negative: Columns | None = None
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
    features: Columns | None = None
    """Columns that a model of tables reads; all but the label by default."""
    columns: dict[str, ColumnType] | None = None
    """Types of columns that a model of tables reads, by name; the others' are found in the training rows. number, date
    (ISO 8601), flag (true or false, yes or no), category, or text, which the model's text encoder reads; ignore leaves
    a column out."""
    label: Annotated[str, Field(min_length=1)] | None = None
    """Column with the label; detected by default for images in a table. For folders of images, the labels are the
    folder names; for IDX files, the IDX labels."""
    labels: Columns | None = None
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

    @model_validator(mode="after")
    def _columns_differ(self) -> Self:
        refuse_conflicts(self._conflicts())
        return self

    def _conflicts(self) -> Iterator[tuple[str, str]]:
        texts, second_texts, features = self.text or [], self.text_pair or [], self.features or []
        if (self.prompt is None) != (self.completion is None):
            yield "completion", "prompt and completion must be set together"
        if self.prompt is not None and self.prompt == self.completion:
            yield "completion", "must not be the same column as prompt"
        has_prompts = self.prompt is not None or self.completion is not None
        if self.messages is not None and (has_prompts or self.text is not None):
            yield "messages", "cannot be set together with text, prompt and completion"
        if has_prompts and self.text is not None:
            yield "text", "cannot be set together with prompt and completion"
        third_texts = self.text_negative or []
        for field, names in (("text", texts), ("textPair", second_texts), ("textNegative", third_texts)):
            if twice := next((name for name in names if names.count(name) > 1), None):
                yield field, f"names the column {twice} twice"
        if both := next((name for name in second_texts if name in texts), None):
            yield "textPair", f"must not name the column {both}, which is in text"
        for field, names in (("text", texts), ("textPair", second_texts)):
            if both := next((name for name in third_texts if name in names), None):
                yield "textNegative", f"must not name the column {both}, which is in {field}"
        if third_texts and self.label is not None:
            yield "textNegative", "cannot be set together with label: it says by itself what is not similar"
        if self.image is not None and self.image == self.label:
            yield "image", "must not be the same column as label"
        read_columns = {"features": features, "columns": self.columns or {}, "text": texts, "textPair": second_texts}
        if field := next((field for field, names in read_columns.items() if self.label in names), None):
            yield (
                field,
                f"must not include the label's column, {self.label}: a model that reads the answer learns nothing",
            )
        if self.label is not None and self.labels is not None:
            yield "labels", "cannot be set together with label"
