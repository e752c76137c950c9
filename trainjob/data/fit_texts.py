"""The first pass over texts: classes, split and preprocessor."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from trainjob.api import CausalLM, Dataset, TextClassifier
from trainjob.data.bad_rows import BadRows, sound_rows
from trainjob.data.causal import CausalPreprocessor, check_tokenizer, train_byte_bpe
from trainjob.data.chat import ChatTemplate
from trainjob.data.cleaning import clean
from trainjob.data.conversation_notes import conversation_notes
from trainjob.data.documents import Layout, layout_of
from trainjob.data.ends import note_missing_turn_end
from trainjob.data.reading import begin_reading, counted, read_part
from trainjob.data.rows import Part, Rows, leave_out
from trainjob.data.small_classes import survey_classes, without_small_classes
from trainjob.data.split import hashes
from trainjob.data.survey import FittedOn, Look, Seen, take_survey
from trainjob.data.tasks import Mapper, tasks_of
from trainjob.data.text import TextPreprocessor, pretrained_text_tokenizer, text_contents, train_wordpiece
from trainjob.data.tokenizers import LENGTH_ROWS, mean_length, pretrained_tokenizer
from trainjob.doing import DOING
from trainjob.errors import DataError, listed

TOKENIZER_ROWS = 100_000
CHARACTERS_PER_TOKEN = 16
"""What lies beyond this many for each token of `maxLength` does not reach the tokenizer's training."""


def fit_classifier(
    dataset: Dataset, model: TextClassifier, train: Sequence[Part], seed: int, mapped: Mapper, bad: BadRows
) -> FittedOn:
    """Rows that cannot be used are counted in `bad`. Raises DataError for what cannot be used at all."""
    columns, label, cleaning = dataset.text, dataset.label, dataset.cleaning
    assert columns is not None
    assert label is not None
    longest = CHARACTERS_PER_TOKEN * model.max_length
    see = _see(seed, Layout("text", columns), lambda text: clean(text[:longest], cleaning))
    look = Look([*columns, label], label, see, TOKENIZER_ROWS if model.encoder else LENGTH_ROWS)
    survey, small = survey_classes(dataset, train, look, mapped, bad)
    division = survey.divide(dataset.validation.fraction, seed)
    texts = survey.sample.items(division.is_training)
    if model.pretrained is not None:
        DOING.begin("loading the tokenizer")
        tokenizer, config = pretrained_text_tokenizer(model.pretrained, model.max_length, texts)
    else:
        assert model.encoder is not None
        DOING.begin("fitting the tokenizer")
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
    return FittedOn(preprocessor, division, survey.digest, texts, small=small)


def fit_language_model(
    dataset: Dataset, model: CausalLM, train: Sequence[Part], seed: int, mapped: Mapper, bad: BadRows
) -> FittedOn:
    """The same for a language model."""
    layout = layout_of(dataset)
    longest = CHARACTERS_PER_TOKEN * model.max_length
    see = _see(seed, layout, lambda text: text[:longest])
    look = Look(layout.columns, None, see, TOKENIZER_ROWS if model.decoder else LENGTH_ROWS)
    survey = without_small_classes(take_survey(dataset.train, train, look, mapped, bad), dataset, bad)
    division = survey.divide(dataset.validation.fraction, seed)
    texts = survey.sample.items(division.is_training)
    field = "spec.model.causalLM.pretrained"
    if model.pretrained is not None:
        DOING.begin("loading the tokenizer")
        tokenizer, config = pretrained_tokenizer(model.pretrained, None, field, texts)
    else:
        assert model.decoder is not None
        DOING.begin("fitting the tokenizer")
        tokenizer, config = train_byte_bpe(texts, model.decoder.vocabulary_size, model.max_length)
    length = mean_length(tokenizer, texts)
    preprocessor = CausalPreprocessor(layout.columns, model.max_length, length, tokenizer, config, layout.form)
    check_tokenizer(preprocessor, field)
    note_missing_turn_end(preprocessor, field)
    if layout.form == "text":
        return FittedOn(preprocessor, division, survey.digest, texts)
    sound = _sound(preprocessor, train, mapped, bad)
    if not sound.any():
        raise DataError(f"{listed(dataset.train.all_uris)} holds no rows that can be used")
    usable = without_small_classes(survey.take(sound), dataset, bad)
    division = usable.divide(dataset.validation.fraction, seed)
    notes = (
        conversation_notes(usable.marks, usable.sample.items(division.is_training), ChatTemplate(config, tokenizer))
        if layout.form == "messages"
        else ()
    )
    return FittedOn(preprocessor, division, survey.digest, texts, notes)


def _sound(preprocessor: CausalPreprocessor, train: Sequence[Part], mapped: Mapper, bad: BadRows) -> np.ndarray:
    """Whether each row that can be read can be learned, which only the tokenizer shows, bool [n]."""
    sound: list[np.ndarray] = []
    tasks, copied = tasks_of(train), replace(preprocessor)  # what the copy caches is not saved or sent with the other
    begin_reading([train])
    for found, others in counted(mapped(partial(_sound_of, preprocessor=copied), tasks), tasks):
        sound.append(found)
        bad.merge(others)
    return np.concatenate(sound)


def _sound_of(parts: list[Part], preprocessor: CausalPreprocessor) -> tuple[np.ndarray, BadRows]:
    bad, sound = BadRows(), [np.empty(0, bool)]
    for part in parts:
        for rows in read_part(part, preprocessor.columns, leave_out):
            found = np.zeros(len(rows.table), bool)
            found[sound_rows(rows, preprocessor.check, bad.add)] = True
            sound.append(found)
    return np.concatenate(sound), bad


def _see(seed: int, layout: Layout, kept: Callable[[str], str]) -> Callable[[Rows], Seen[str]]:
    """Hashes the rows' texts, and offers what is `kept` of each to the sample."""

    def see(rows: Rows) -> Seen[str]:
        texts = layout.sources(rows.table, rows.where)
        marks = layout.marks(rows.table, rows.where)
        return Seen(hashes(text_contents(texts), seed), lambda index: kept(texts[index]), marks)

    return see
