"""The first pass over texts with spans: target, split and preprocessor."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from trainjob.api import Dataset, TokenClassifier
from trainjob.data.first_pass.split import hashes
from trainjob.data.first_pass.survey import FittedOn, ScannedRows, ScanPlan, take_survey
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.rows import Rows, SourcePart, row_number
from trainjob.data.read.spans import spans_given
from trainjob.doing import DOING
from trainjob.errors import DataError
from trainjob.formatting import shortened
from trainjob.kinds.inputs.text import joined_texts, pretrained_text_tokenizer, text_contents, train_wordpiece
from trainjob.kinds.token_classifier.input import SpanInput, token_offsets
from trainjob.kinds.token_classifier.target import SpanLabels, SpanTarget
from trainjob.pretrained.tokenizers import LENGTH_ROWS, TOKENIZER_ROWS, mean_length, set_truncation
from trainjob.redaction import without_secrets
from trainjob.schema.spans import Span


class _SampledRow(NamedTuple):
    text: str
    spans: list[Span]
    where: str
    """File and row."""


def fit_spans(
    dataset: Dataset, model: TokenClassifier, train: Sequence[SourcePart], seed: int, mapper: Mapper, bad: BadRows
) -> FittedOn:
    """Unusable rows are counted in `bad`. Raises DataError if no model can be fitted."""
    columns, label = dataset.text, dataset.label
    assert columns is not None
    assert label is not None
    if len(columns) > 1:
        raise DataError(f"spec.dataset.text: spans lie in the text of one column, not of {len(columns)}")

    def scan(rows: Rows) -> ScannedRows[_SampledRow]:
        texts = joined_texts(rows.table, columns, rows.where)
        spans = spans_given(rows.table, columns[0], label, row_number)
        has_text = np.array([bool(text.strip()) for text in texts], np.uint8)

        def sampled(index: int) -> _SampledRow:
            return _SampledRow(texts[index], spans[index], without_secrets(rows.where(index)))

        return ScannedRows(hashes(text_contents(texts), seed), sampled, has_text)

    labels = SpanLabels(columns[0], label)
    plan = ScanPlan([*columns, label], labels, scan, TOKENIZER_ROWS if model.encoder else LENGTH_ROWS)
    survey, target = take_survey(dataset, train, plan, mapper, bad)
    division = survey.divide(target, dataset.validation.fraction, seed)
    sample = survey.sample.items(division.is_training)
    texts = [row.text for row in sample]
    if model.pretrained is not None:
        DOING.begin("loading the tokenizer")
        field = f"{model.path}.pretrained"
        tokenizer, config = pretrained_text_tokenizer(model.pretrained, model.max_length, field, texts)
    else:
        assert model.encoder is not None
        DOING.begin("fitting the tokenizer")
        tokenizer, config = train_wordpiece(texts, model.encoder.vocabulary_size, model.max_length)
    set_truncation(tokenizer, None)
    assert isinstance(target, SpanTarget)
    text = SpanInput(
        columns=columns,
        label=label,
        types=target.types,
        max_length=model.max_length,
        mean_length=mean_length(tokenizer, texts),
        tokenizer=tokenizer,
        tokenizer_config=config,
    )
    return FittedOn(text, division, survey.digest(target), texts, _notes(tokenizer, sample[:LENGTH_ROWS]))


def _notes(tokenizer: Tokenizer, sample: Sequence[_SampledRow]) -> list[str]:
    """Remarks on spans whose ends lie inside tokens, which the model cannot find exactly."""
    encodings = tokenizer.encode_batch([row.text for row in sample], add_special_tokens=False)
    inside: list[str] = []
    for row, encoding in zip(sample, encodings, strict=True):
        offsets = token_offsets(row.text, encoding)
        starts, ends = set(offsets[:, 0].tolist()), set(offsets[:, 1].tolist())
        inside += [
            f'"{shortened(row.text[start:end])}" in {row.where}'
            for start, end, _ in row.spans
            if start not in starts or end not in ends
        ]
    if not inside:
        return []
    return [
        f"{len(inside):,} of {sum(len(row.spans) for row in sample):,} spans in a sample of the training rows begin or "
        f"end inside a token, first {inside[0]}: the model learns the whole tokens, and what it finds there counts as "
        "wrong. If whole words are meant, mark them as spans"
    ]
