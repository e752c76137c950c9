"""The first pass over the rows of a language model: split and preprocessor."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np

from trainjob.api import CausalLM, Dataset
from trainjob.data.first_pass.split import hashes
from trainjob.data.first_pass.survey import FittedOn, ScannedRows, ScanPlan, take_survey
from trainjob.data.read.bad_rows import BadRows, TooFewRows, valid_rows
from trainjob.data.read.chunking import Mapper, group_parts
from trainjob.data.read.counted_reading import begin_reading, counted, read_part
from trainjob.data.read.rows import Rows, SourcePart, leave_out
from trainjob.doing import DOING
from trainjob.errors import listed
from trainjob.kinds.causal_lm.chat import ChatTemplate
from trainjob.kinds.causal_lm.conversation_notes import conversation_notes
from trainjob.kinds.causal_lm.packing import FLAG_BITS
from trainjob.kinds.causal_lm.row_layout import RowLayout, layout_of
from trainjob.kinds.causal_lm.stop_tokens import note_missing_turn_end
from trainjob.kinds.causal_lm.tokens import TokensInput, check_tokenizer, train_byte_bpe
from trainjob.kinds.inputs.text import text_contents
from trainjob.kinds.inputs.token_codes import token_type_of
from trainjob.kinds.targets.no_labels import NoLabels
from trainjob.pretrained.tokenizers import (
    CHARACTERS_PER_TOKEN,
    LENGTH_ROWS,
    TOKENIZER_ROWS,
    mean_length,
    pretrained_tokenizer,
)


def fit_language_model(
    dataset: Dataset, model: CausalLM, train: Sequence[SourcePart], seed: int, mapper: Mapper, bad: BadRows
) -> FittedOn:
    """Unusable rows are counted in `bad`. Raises DataError if no model can be fitted."""
    layout = layout_of(dataset)
    longest = CHARACTERS_PER_TOKEN * model.max_length
    scan = _scan_texts(seed, layout, lambda text: text[:longest])
    plan = ScanPlan(layout.columns, NoLabels(), scan, TOKENIZER_ROWS if model.decoder else LENGTH_ROWS)
    survey, target = take_survey(dataset, train, plan, mapper, bad)
    division = survey.divide(target, dataset.validation.fraction, seed)
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
    tokens = TokensInput(
        layout.columns,
        model.max_length,
        length,
        tokenizer,
        config,
        layout.form,
        token_type=token_type_of(tokenizer, FLAG_BITS),
    )
    check_tokenizer(tokens, field)
    template = ChatTemplate(config, tokenizer) if layout.form == "messages" else None
    if template is not None and template.uses("strftime_now"):
        tokens = replace(tokens, fitted_at=datetime.now().isoformat(timespec="seconds"))
    note_missing_turn_end(tokens, field)
    if layout.form == "text":
        return FittedOn(tokens, division, survey.digest(target), texts)
    is_valid = _valid_rows(tokens, train, mapper, bad)
    if not is_valid.any():
        raise TooFewRows(f"{listed(dataset.train.all_uris)} has no rows that can be used")
    usable, target = NoLabels().fit(survey.take(is_valid), dataset, bad)
    division = usable.divide(target, dataset.validation.fraction, seed)
    sample = usable.sample.items(division.is_training)
    notes = conversation_notes(usable.marks, sample, template) if template is not None else ()
    return FittedOn(tokens, division, survey.digest(target), texts, notes)


def _valid_rows(tokens: TokensInput, train: Sequence[SourcePart], mapper: Mapper, bad: BadRows) -> np.ndarray:
    """Whether each readable row can be learned, which depends on the tokenizer, bool [n]."""
    is_valid: list[np.ndarray] = []
    tasks, copied = group_parts(train), replace(tokens)  # what the copy caches is not saved or sent with the other
    begin_reading([train])
    for found, others in counted(mapper(partial(_sound_of, tokens=copied), tasks), tasks):
        is_valid.append(found)
        bad.merge(others)
    return np.concatenate(is_valid)


def _sound_of(parts: list[SourcePart], tokens: TokensInput) -> tuple[np.ndarray, BadRows]:
    bad, is_valid = BadRows(), [np.empty(0, bool)]
    for part in parts:
        for rows in read_part(part, tokens.columns, leave_out):
            found = np.zeros(len(rows.table), bool)
            found[valid_rows(rows, tokens.check, bad.add)] = True
            is_valid.append(found)
    return np.concatenate(is_valid), bad


def _scan_texts(seed: int, layout: RowLayout, shorten: Callable[[str], str]) -> Callable[[Rows], ScannedRows[str]]:
    """Hashes the rows' texts and samples each text as `shorten` returns it."""

    def scan(rows: Rows) -> ScannedRows[str]:
        texts, marks = layout.raw_texts_and_marks(rows.table, rows.where)
        return ScannedRows(hashes(text_contents(texts), seed), lambda index: shorten(texts[index]), marks)

    return scan
