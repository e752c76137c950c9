"""The first pass over texts with labels: target, split and preprocessor."""

from collections.abc import Sequence

import numpy as np

from trainjob.api import Dataset, TextNetwork
from trainjob.data.first_pass.split import hashes
from trainjob.data.first_pass.survey import FittedOn, LabelReader, ScannedRows, ScanPlan, take_survey
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.hub_features import numbered_label_notes
from trainjob.data.read.rows import Rows, SourcePart
from trainjob.doing import DOING
from trainjob.kinds.inputs.cleaning import clean
from trainjob.kinds.inputs.text import (
    TextInput,
    joined_texts,
    pretrained_text_tokenizer,
    text_contents,
    train_wordpiece,
)
from trainjob.pretrained.tokenizers import CHARACTERS_PER_TOKEN, LENGTH_ROWS, TOKENIZER_ROWS, mean_length


def fit_texts(
    labels: LabelReader,
    dataset: Dataset,
    model: TextNetwork,
    train: Sequence[SourcePart],
    seed: int,
    mapped: Mapper,
    bad: BadRows,
) -> FittedOn:
    """`labels` reads the label's column. Unusable rows are counted in `bad`. Raises DataError if no model can be
    fitted."""
    columns, label, cleaning = dataset.text, dataset.label, dataset.cleaning
    assert columns is not None
    assert label is not None
    longest = CHARACTERS_PER_TOKEN * model.max_length

    def scan(rows: Rows) -> ScannedRows[str]:
        texts = joined_texts(rows.table, columns, rows.where)
        has_text = np.array([bool(text.strip()) for text in texts], np.uint8)
        return ScannedRows(
            hashes(text_contents(texts), seed), lambda index: clean(texts[index][:longest], cleaning), has_text
        )

    plan = ScanPlan([*columns, label], labels, scan, TOKENIZER_ROWS if model.encoder else LENGTH_ROWS)
    survey, target = take_survey(dataset, train, plan, mapped, bad)
    division = survey.divide(target, dataset.validation.fraction, seed)
    texts = survey.sample.items(division.is_training)
    if model.pretrained is not None:
        DOING.begin("loading the tokenizer")
        tokenizer, config = pretrained_text_tokenizer(
            model.pretrained, model.max_length, f"{model.path}.pretrained", texts
        )
    else:
        assert model.encoder is not None
        DOING.begin("fitting the tokenizer")
        tokenizer, config = train_wordpiece(texts, model.encoder.vocabulary_size, model.max_length)
    text = TextInput(
        columns=columns,
        cleaning=cleaning,
        max_length=model.max_length,
        mean_length=mean_length(tokenizer, texts),
        tokenizer=tokenizer,
        tokenizer_config=config,
    )
    return FittedOn(text, division, survey.digest(target), texts, numbered_label_notes(train[0], label))
