"""`spec.dataset`: what the model learns from."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from trainjob.redaction import without_secrets
from trainjob.schema.base import OneOf, StrictModel, refuse_conflicts
from trainjob.schema.uris import DataURI

Unique = Field(json_schema_extra={"uniqueItems": True})
MOST_URIS = 1000


def _refuse_twice(uris: list[str]) -> list[str]:
    if twice := next((uri for uri, count in Counter(uris).items() if count > 1), None):
        raise PydanticCustomError("twice", "names {uri} twice", {"uri": without_secrets(twice)})
    return uris


DataURIs = Annotated[list[DataURI], Unique, Field(min_length=1, max_length=MOST_URIS), AfterValidator(_refuse_twice)]


class Source(OneOf):
    """Where rows come from."""

    choices: ClassVar[tuple[str, ...]] = ("uri", "uris")

    uri: DataURI | None = None
    """A file, a folder or a glob: a path (relative to this YAML), `s3://`, `gs://`, `https://`, or
    `hf://datasets/OWNER/NAME` of the Hugging Face hub, with `@REVISION` after the name for a branch, tag or commit."""
    uris: DataURIs | None = None
    """Several of these in the place of `uri`, in any order; no file may be in two of them."""
    format: Literal["csv", "jsonl", "parquet", "images", "mnist"] | None = None
    """csv (also with tabs), jsonl (a JSON object a line, or one array of objects), parquet, images (a folder for each
    class) or mnist (IDX files); by default told by the file's ending. csv and jsonl may be compressed (.gz, .bz2, .zst,
    or .zip with one file). Folders `name=value` are columns of the tables in them."""

    @property
    def all_uris(self) -> list[str]:
        """Where the rows come from, in the order in which they are read: that of their names, as in a folder, since
        Kubernetes takes another order of `uris` for no change."""
        return sorted(self.uris or [str(self.uri)])


class Validation(OneOf):
    """What the model is validated on after each epoch."""

    fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the training rows to set aside: stratified by label, seeded by `training.seed`."""
    uri: DataURI | None = None
    """Rows of their own, in the training rows' format."""
    uris: DataURIs | None = None
    """The same from several places, in any order; no file may be in two of them."""


class Cleaning(StrictModel):
    """What is done to each text before it is tokenized. Control characters go and white space is folded in any case."""

    lowercase: bool = False
    """Lower-case the text; a pretrained uncased tokenizer does this by itself."""
    remove_urls: Annotated[bool, Field(alias="removeURLs")] = False
    """Remove http(s) and www addresses."""
    remove_html: Annotated[bool, Field(alias="removeHTML")] = False
    """Remove HTML tags and resolve entities."""


class Dataset(StrictModel):
    """What the model learns from."""

    train: Source
    """The training rows. Where the folder holds a whole data set, as `train/`, `valid/` and `test/`, these are taken as
    the sets that are not given here."""
    validation: Validation = Validation(fraction=0.2)
    """What the model is validated on after each epoch."""
    test: Source | None = None
    """Scored once, at the end, with the best checkpoint."""
    unlabelled: Source | None = None
    """More rows to train on, whose labels are what the teacher of `training.distillation` says."""
    text: Annotated[list[Annotated[str, Field(min_length=1)]], Unique, Field(min_length=1)] | None = None
    """Columns that hold the text, joined by a blank; for text classifiers and language models."""
    prompt: Annotated[str, Field(min_length=1)] | None = None
    """Column that holds what a language model is given, and learns nothing of; needs `completion`."""
    completion: Annotated[str, Field(min_length=1)] | None = None
    """Column that holds how a language model learns to continue the prompt."""
    messages: Annotated[str, Field(min_length=1)] | None = None
    """Column that holds conversations, lists of objects with `role` and `content`, of which a language model learns
    what the role `assistant` says. The columns `tools` and `parallel_tool_calls` beside it, if there, belong to it."""
    image: Annotated[str, Field(min_length=1)] | None = None
    """Column of a table that holds images, or their paths relative to the table's folder; for image classifiers. By
    default the one that looks like it."""
    label: Annotated[str, Field(min_length=1)] | None = None
    """Column that holds the label. For images in a table by default the one that looks like it; of a folder of images
    and of IDX files the labels are the folders' names and the IDX labels."""
    cleaning: Cleaning = Cleaning()
    """What is done to each text before it is tokenized; for text classifiers."""
    on_bad_rows: Literal["fail", "drop"] = "fail"
    """What becomes of rows that cannot be used: with an empty or unknown label, a damaged image, a line that is no row,
    a conversation of which nothing can be learned, or of a class with too few rows. fail tells of all of them before
    anything is trained; drop leaves them out, in every set, and counts them in the report."""
    loader: Literal["rayData", "dataLoader"] = "rayData"
    """rayData prepares rows in Ray Data and streams what does not fit in memory; dataLoader keeps them in memory
    in a PyTorch DataLoader and, on one machine, starts faster because it needs no Ray cluster."""

    @model_validator(mode="after")
    def _columns_differ(self) -> Self:
        refuse_conflicts(self._conflicts())
        return self

    def _conflicts(self) -> Iterator[tuple[str, str]]:
        texts = self.text or []
        if (self.prompt is None) != (self.completion is None):
            yield "completion", "prompt and completion need each other"
        if self.prompt is not None and self.prompt == self.completion:
            yield "completion", "must be another column than the prompt's"
        pair = self.prompt is not None or self.completion is not None
        if self.messages is not None and (pair or self.text is not None):
            yield "messages", "cannot be set together with text, prompt and completion"
        if pair and self.text is not None:
            yield "text", "cannot be set together with prompt and completion"
        if twice := next((name for name in texts if texts.count(name) > 1), None):
            yield "text", f"names the column {twice} twice"
        if self.image is not None and self.image == self.label:
            yield "image", "must be another column than the label's"
        if self.label in texts:
            yield (
                "text",
                f"must not hold the label's column, {self.label}: a model that reads the answer learns nothing",
            )
