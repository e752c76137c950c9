"""The first pass over the rows: classes, split and preprocessor, fitted on the training part alone."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np

from trainjob.api import CausalLM, Dataset, Model, Source, TextClassifier, TrainJobSpec
from trainjob.api.data_profile import DataProfile
from trainjob.data.causal import CausalPreprocessor, check_tokenizer, train_byte_bpe
from trainjob.data.chat import ChatTemplate
from trainjob.data.cleaning import clean
from trainjob.data.conversation_notes import conversation_notes
from trainjob.data.documents import Layout, layout_of
from trainjob.data.ends import note_missing_turn_end
from trainjob.data.fingerprint import Fingerprint, changes_of, fingerprints, refuse_changes
from trainjob.data.fit_images import fit_images
from trainjob.data.image import ImagePreprocessor
from trainjob.data.image_files import IDXFiles, ImageFiles
from trainjob.data.label_notes import label_notes
from trainjob.data.labels import label_indices
from trainjob.data.preprocessor import Preprocessor, load_preprocessor
from trainjob.data.profile import Keys, class_sizes, joined, set_profile
from trainjob.data.reading import begin_reading, counted, read_all
from trainjob.data.remote_model import local_model
from trainjob.data.rows import Part, Rows
from trainjob.data.source import UNLABELLED, parts, sources_of
from trainjob.data.split import Split, hashes
from trainjob.data.survey import FittedOn, Look, Seen, digest_of, survey_classes, take_survey
from trainjob.data.tasks import Mapper, one_by_one, tasks_of
from trainjob.data.text import TextPreprocessor, pretrained_text_tokenizer, text_contents, train_wordpiece
from trainjob.data.tokenizer_check import compared_texts
from trainjob.data.tokenizers import LENGTH_ROWS, cut_share, mean_length, pretrained_tokenizer
from trainjob.doing import DOING
from trainjob.errors import Alarm, DataError, listed, notify
from trainjob.scratch import scratch_folder
from trainjob.storage import Folder

SPLIT_FILE = "split.json"
TOKENIZER_ROWS = 100_000
CHARACTERS_PER_TOKEN = 16
"""What lies beyond this many for each token of `maxLength` does not reach the tokenizer's training."""


@dataclass(frozen=True)
class Fitted:
    """What every later pass over the rows needs. Picklable."""

    preprocessor: Preprocessor
    label: str | None
    """Column of the label; None for a language model, which has none."""
    split: Split | None
    """None where the validation rows have a URI of their own."""
    rows: dict[str, int]
    """Rows of `train`, `validation` and, where there are any, `test` and `unlabelled`."""
    contents: dict[str, str]
    """A digest of the rows of each set that has a source of its own."""
    sources: dict[str, Fingerprint] = field(default_factory=dict)
    """The files of each of these sets, as they were before the rows were read."""
    profile: DataProfile | None = None
    """What was counted in the rows; None where an earlier version fitted them."""
    sample: list[str] = field(default_factory=list)
    """Beginnings of some training texts, by which the exported tokenizer is compared; empty for images."""

    @property
    def columns(self) -> list[str]:
        """What is read of each labelled row."""
        return self.preprocessor.columns if self.label is None else [*self.preprocessor.columns, self.label]

    @property
    def training_rows(self) -> int:
        """Rows of an epoch; where several are packed into one, before that."""
        return self.rows["train"] + self.rows.get(UNLABELLED, 0)

    def training_row_bytes(self, spec: TrainJobSpec) -> int:
        """Memory that a prepared training row takes, on average, with what a teacher says to it."""
        logits = len(self.preprocessor.classes) if spec.training.distillation is not None else 0
        return self.preprocessor.row_bytes + logits * np.float32().itemsize

    def source_rows(self, name: str) -> int:
        """Rows of the source of a set; some of those of `train` may be set aside for validation."""
        shares = ("train", "validation") if name == "train" and self.split is not None else (name,)
        return sum(self.rows[share] for share in shares)

    def save(self, folder: Folder) -> None:
        """Write the preprocessor's files, then split.json: where that exists, all is there."""
        with scratch_folder() as temporary:
            self.preprocessor.save(temporary)
            folder.upload(temporary, "")
        state = {
            "label": self.label,
            "rows": self.rows,
            "split": self.split and asdict(self.split),
            "contents": self.contents,
            "sources": {name: asdict(source) for name, source in self.sources.items()},
            "profile": self.profile and self.profile.model_dump(mode="json", by_alias=True),
            "sample": self.sample,
        }
        folder.write(SPLIT_FILE, json.dumps(state, indent=1).encode())

    @classmethod
    def load(cls, folder: Folder) -> "Fitted":
        with scratch_folder() as temporary:
            folder.download("", temporary)
            state = json.loads((temporary / SPLIT_FILE).read_bytes())
            preprocessor = load_preprocessor(temporary)
        split = state["split"] and Split(**state["split"])
        sources = {name: Fingerprint(**source) for name, source in state.get("sources", {}).items()}
        profile = DataProfile.model_validate(state["profile"]) if state.get("profile") else None
        contents, sample = state.get("contents", {}), state.get("sample", [])
        return cls(preprocessor, state["label"], split, state["rows"], contents, sources, profile, sample)


def fit(spec: TrainJobSpec, mapped: Mapper = one_by_one) -> Fitted:
    """Have every set read once by `mapped`, keeping 16 bytes a row and a bounded sample, and fit its preprocessor.

    Raises DataError for rows that cannot be used, StorageError where they cannot be reached.
    """
    assert spec.dataset is not None
    sources = fingerprints(spec)
    sets = {
        name: parts_of(spec, source, labelled=name != UNLABELLED) for name, source in sources_of(spec.dataset).items()
    }
    with local_model(spec, weights=False) as model:
        begin_reading(sets.values())
        found = _fit(spec.dataset, model, sets["train"], spec.training.seed, mapped)
    split, rows = found.division.split, found.division.rows
    fitted = Fitted(found.preprocessor, label_of(spec), split, rows, {"train": found.digest}, sources)
    keys = found.division.sets
    begin_reading(others for name, others in sets.items() if name != "train")
    for name, others in sets.items():
        if name != "train":
            look = _keys_alone if name == UNLABELLED else _keys
            tasks = tasks_of(others)
            found_keys = mapped(partial(look, fitted=fitted, seed=spec.training.seed), tasks)
            keys[name] = joined(counted(found_keys, tasks))
            fitted.rows[name], fitted.contents[name] = _counted(others, fitted, keys[name])
    return replace(fitted, profile=_profile(found, keys), sample=compared_texts(found.texts))


def label_of(spec: TrainJobSpec) -> str | None:
    """The column that holds the labels; None for a language model."""
    assert spec.dataset is not None
    if spec.model.classifier is None:
        return None
    return spec.dataset.label if spec.model.text_classifier is not None else "label"


def _profile(found: FittedOn, keys: dict[str, Keys]) -> DataProfile:
    training, preprocessor = np.sort(keys["train"].hashes), found.preprocessor
    return DataProfile(
        sets={name: set_profile(each, None if name == "train" else training) for name, each in keys.items()},
        cut_share=cut_share(preprocessor.tokenizer, found.texts)
        if isinstance(preprocessor, TextPreprocessor)
        else None,
        class_sizes=class_sizes(preprocessor.classes, preprocessor.class_counts) if preprocessor.classes else None,
        notes=[*found.notes, *label_notes(preprocessor.classes, preprocessor.class_counts)],
    )


def tell_of_data(fitted: Fitted) -> None:
    """Gives a Notice of what stands out in the rows, and an Alarm for each thing that makes scores meaningless."""
    remarks = fitted.profile.remarks if fitted.profile is not None else []
    for remark in remarks:
        if remark.is_severe:
            notify(remark.text, Alarm)
    if others := [remark.text for remark in remarks if not remark.is_severe]:
        notify(f"the data: {'; '.join(others)}")


def _fit(dataset: Dataset, model: Model, train: list[Part], seed: int, mapped: Mapper) -> FittedOn:
    if model.text_classifier is not None:
        return _fit_text(dataset, model.text_classifier, train, seed, mapped)
    if model.causal_lm is not None:
        return _fit_causal(dataset, model.causal_lm, train, seed, mapped)
    assert model.image_classifier is not None
    return fit_images(dataset, model.image_classifier, train, seed, mapped)


def check_unchanged(spec: TrainJobSpec, kept: Fitted, mapped: Mapper = one_by_one) -> None:
    """Raises DataError where the data is no longer what `kept` was fitted on.

    Files of other times alone may hold the same rows, which are then read again, by `mapped`.
    """
    assert spec.dataset is not None
    if not kept.sources:  # kept by an earlier version
        return
    now = fingerprints(spec)
    changes = {name: change for name, old in kept.sources.items() if (change := changes_of(old, now[name]))}
    if not changes and now != kept.sources:
        again = fit(spec, mapped)
        changes = {
            name: f"rows {kept.source_rows(name):,} → {again.source_rows(name):,}, "
            f"changed {old.changed} → {now[name].changed}"
            for name, old in kept.sources.items()
            if again.contents[name] != kept.contents[name]
        }
    refuse_changes(spec, changes)


def classes_of(rows: Rows, fitted: Fitted) -> np.ndarray:
    """The rows' classes, int64 [n]; 0 where there are no labels. Raises DataError for an empty or unknown label."""
    if fitted.label is None:
        return np.zeros(len(rows.table), np.int64)
    return label_indices(rows, fitted.label, fitted.preprocessor.classes)


def parts_of(spec: TrainJobSpec, source: Source, labelled: bool = True) -> list[Part]:
    """The parts of a source. Raises DataError where they are not of the kind that the model takes."""
    layout = Layout("text", []) if spec.model.causal_lm is None or spec.dataset is None else layout_of(spec.dataset)
    endpoint = spec.storage.endpoint if spec.storage else None
    found = parts(source, endpoint, labelled, layout.nested, layout.optional)
    holds_images, place = isinstance(found[0], ImageFiles | IDXFiles), listed(source.all_uris)
    if spec.model.image_classifier is None and spec.model.function is None and holds_images:
        kind = spec.model.in_yaml(spec.model.chosen)
        raise DataError(f"{place} holds images, but model.{kind} needs csv, jsonl or parquet")
    if spec.model.image_classifier is not None and not holds_images:
        raise DataError(f"{place} is a table, but model.imageClassifier needs a folder of images or IDX files")
    return found


def _fit_text(dataset: Dataset, model: TextClassifier, train: list[Part], seed: int, mapped: Mapper) -> FittedOn:
    columns, label, cleaning = dataset.text, dataset.label, dataset.cleaning
    assert columns is not None
    assert label is not None
    longest = CHARACTERS_PER_TOKEN * model.max_length
    see = _see(seed, Layout("text", columns), lambda text: clean(text[:longest], cleaning))
    look = Look([*columns, label], label, see, TOKENIZER_ROWS if model.encoder else LENGTH_ROWS)
    survey = survey_classes(dataset, train, look, mapped)
    division = survey.divide(dataset.validation.fraction, seed)
    texts = survey.sample.items(division.is_training)
    DOING.begin("fitting the tokenizer")
    if model.pretrained is not None:
        tokenizer, config = pretrained_text_tokenizer(model.pretrained, model.max_length, texts)
    else:
        assert model.encoder is not None
        tokenizer, config = train_wordpiece(texts, model.encoder.vocabulary_size, model.max_length)
    preprocessor = TextPreprocessor(
        classes=survey.classes,
        class_counts=division.class_counts,
        columns=columns,
        cleaning=cleaning,
        max_length=model.max_length,
        mean_length=mean_length(tokenizer, texts),
        tokenizer=tokenizer,
        tokenizer_config=config,
    )
    return FittedOn(preprocessor, division, survey.digest, texts)


def _fit_causal(dataset: Dataset, model: CausalLM, train: list[Part], seed: int, mapped: Mapper) -> FittedOn:
    layout = layout_of(dataset)
    longest = CHARACTERS_PER_TOKEN * model.max_length
    see = _see(seed, layout, lambda text: text[:longest])
    look = Look(layout.columns, None, see, TOKENIZER_ROWS if model.decoder else LENGTH_ROWS)
    survey = take_survey(dataset.train, train, look, mapped)
    division = survey.divide(dataset.validation.fraction, seed)
    texts = survey.sample.items(division.is_training)
    DOING.begin("fitting the tokenizer")
    field = "spec.model.causalLM.pretrained"
    if model.pretrained is not None:
        tokenizer, config = pretrained_tokenizer(model.pretrained, None, field, texts)
    else:
        assert model.decoder is not None
        tokenizer, config = train_byte_bpe(texts, model.decoder.vocabulary_size, model.max_length)
    length = mean_length(tokenizer, texts)
    preprocessor = CausalPreprocessor(layout.columns, model.max_length, length, tokenizer, config, layout.form)
    check_tokenizer(preprocessor, field)
    note_missing_turn_end(preprocessor, field)
    notes = (
        conversation_notes(survey.marks, texts, ChatTemplate(config, tokenizer)) if layout.form == "messages" else ()
    )
    return FittedOn(preprocessor, division, survey.digest, texts, notes)


def _see(seed: int, layout: Layout, kept: Callable[[str], str]) -> Callable[[Rows], Seen[str]]:
    """Hashes the rows' texts, and offers what is `kept` of each to the sample."""

    def see(rows: Rows) -> Seen[str]:
        texts = layout.sources(rows.table, rows.where)
        marks = layout.marks(rows.table, rows.where)
        return Seen(hashes(text_contents(texts), seed), lambda index: kept(texts[index]), marks)

    return see


def _keys(some: list[Part], fitted: Fitted, seed: int) -> Keys:
    """Raises DataError where a row's class is none of the training rows'."""
    return joined(_keys_of(rows, fitted, seed) for rows in read_all(some, fitted.columns))


def _keys_of(rows: Rows, fitted: Fitted, seed: int) -> Keys:
    contents = fitted.preprocessor.contents(rows.table, rows.where)
    is_image = fitted.preprocessor.kind == ImagePreprocessor.kind
    is_empty = np.array([not is_image and not content.strip() for content in contents], bool)
    return Keys(classes_of(rows, fitted), hashes(contents, seed), is_empty)


def _keys_alone(some: list[Part], fitted: Fitted, seed: int) -> Keys:
    """The same of unlabelled rows: a label, where there is one, does not matter."""
    return _keys(some, replace(fitted, label=None), seed)


def _counted(some: Sequence[Part], fitted: Fitted, keys: Keys) -> tuple[int, str]:
    """Number and digest of the rows. Raises DataError for none."""
    if len(keys.labels) == 0:
        raise DataError(f"{some[0].uri} holds no rows")
    return len(keys.labels), digest_of(fitted.preprocessor.classes or [""], keys.labels, keys.hashes)
