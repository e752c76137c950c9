"""The first pass over texts with labels: target, split and preprocessor."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from trainjob.api import Dataset, TextEmbedder, TextNetwork
from trainjob.data.arrays import text_bytes
from trainjob.data.first_pass.split import hashes
from trainjob.data.first_pass.survey import FittedOn, LabelReader, ScannedRows, ScanPlan, fit_target, scan_rows
from trainjob.data.read.bad_rows import BadRows
from trainjob.data.read.chunking import Mapper
from trainjob.data.read.hub_features import class_names, hub_features
from trainjob.data.read.label_lists import label_column
from trainjob.data.read.partitions import Partition
from trainjob.data.read.rows import Rows, SourcePart, as_text
from trainjob.data.read.tables import ParquetRows
from trainjob.doing import DOING
from trainjob.errors import DataError, listed, notify
from trainjob.kinds.inputs.cells import trimmed
from trainjob.kinds.inputs.text import (
    TextInput,
    cleaned,
    pretrained_text_tokenizer,
    row_texts,
    separates,
    text_contents,
    train_wordpiece,
)
from trainjob.kinds.inputs.token_codes import token_type_of
from trainjob.pretrained.tokenizers import CHARACTERS_PER_TOKEN, INPUT_NAMES, LENGTH_ROWS, TOKENIZER_ROWS, mean_length

_LAST_BIT = 15


def fit_texts(
    labels: LabelReader,
    dataset: Dataset,
    model: TextNetwork | TextEmbedder,
    train: Sequence[SourcePart],
    seed: int,
    mapper: Mapper,
    bad: BadRows,
    input_type: type[TextInput] = TextInput,
) -> FittedOn:
    """`labels` reads the label's column, if there is one. Unusable rows are counted in `bad`. Raises DataError if no
    model can be fitted."""
    assert dataset.text is not None
    groups = [names for names in (dataset.text, dataset.text_pair, dataset.text_negative) if names]
    columns = [name for names in groups for name in names]
    if both := next((name for name in columns if name in (dataset.labels or [])), None):
        raise DataError(
            f"spec.dataset.text: must not include the label {both}: a model that reads the answer learns nothing"
        )
    survey, reader = scan_rows(train, _plan(labels, dataset, model, groups, seed), mapper, bad)
    empty = _empty_columns(survey.marks, columns) if len(survey.marks) else []
    if len(empty) == len(columns):
        are_empty = f'column "{empty[0]}" is' if len(empty) == 1 else f"columns {listed(empty)} are"
        raise DataError(f"{listed(dataset.train.all_uris)}: {are_empty} empty in every row: nothing can be learned")
    survey, target = fit_target(dataset, survey, reader, bad)
    division = survey.divide(target, dataset.validation.fraction, seed)
    texts, pair = survey.sample.items(division.is_training), dataset.text_pair or []
    tokenizer, config = _tokenizer(model, texts)
    if model.pretrained is not None and pair and input_type.encodes_pairs and not separates(tokenizer):
        notify(
            f"{model.path}.pretrained: the tokenizer of {model.pretrained} puts no token between the two texts of a "
            "pair, so the model does not see where the first one ends; those of encoders, such as BERT, do"
        )
    negative: dict[str, Any] = {"negative": dataset.text_negative} if dataset.text_negative else {}
    text = input_type(
        columns=columns,
        cleaning=dataset.cleaning,
        max_length=model.max_length,
        mean_length=0.0,
        tokenizer=tokenizer,
        tokenizer_config=config,
        pair=pair,
        has_types=model.pretrained is not None and bool(pair) and "token_type_ids" in config[INPUT_NAMES],
        **negative,
    )
    encoded = text.encodable(texts)
    text = replace(
        text,
        mean_length=mean_length(tokenizer, encoded) * len(encoded) / max(len(texts), 1),
        token_type=token_type_of(tokenizer, text.flag_bits),
    )
    label = label_column(dataset)
    notes = [f'column "{name}" is empty in every row' for name in empty]
    notes += _numbered_label_notes(train[0], label) if label else []
    return FittedOn(text, division, survey.digest(target), texts, notes)


def _plan(
    labels: LabelReader, dataset: Dataset, model: TextNetwork | TextEmbedder, groups: Sequence[Sequence[str]], seed: int
) -> ScanPlan[str]:
    """How to scan the rows. `groups` are the columns of each text of a row."""
    columns, label = [name for names in groups for name in names], label_column(dataset)
    longest = CHARACTERS_PER_TOKEN * model.max_length

    def scan(rows: Rows) -> ScannedRows[str]:
        texts = row_texts(rows.table, groups, rows.where)
        return ScannedRows(
            hashes(text_contents(list(map("\n".join, texts))), seed),
            lambda index: cleaned(texts[index], dataset.cleaning, longest),
            _marks(rows, columns),
        )

    sampled = TOKENIZER_ROWS if model.encoder else LENGTH_ROWS
    return ScanPlan([*columns, *([label] if label else [])], labels, scan, sampled)


def _tokenizer(model: TextNetwork | TextEmbedder, texts: list[str]) -> tuple[Tokenizer, dict[str, Any]]:
    """The pretrained tokenizer, or one that is trained on the texts, and its configuration for transformers."""
    if model.pretrained is not None:
        DOING.begin("loading the tokenizer")
        return pretrained_text_tokenizer(model.pretrained, model.max_length, f"{model.path}.pretrained", texts)
    assert model.encoder is not None
    DOING.begin("fitting the tokenizer")
    return train_wordpiece(texts, model.encoder.vocabulary_size, model.max_length)


def _marks(rows: Rows, columns: Sequence[str]) -> np.ndarray:
    """A bit for each of the columns, set where a row has text in it, uint16 [n]; the last bit is for all others."""
    marks = np.zeros(len(rows.table), np.uint16)
    for number, name in enumerate(columns):
        _, lengths, _ = text_bytes(trimmed(as_text(rows.table[name], name, rows.where)))
        marks |= (lengths > 0).astype(np.uint16) << min(number, _LAST_BIT)
    return marks


def _empty_columns(marks: np.ndarray, columns: Sequence[str]) -> list[str]:
    """The columns without text in all rows, which have these marks."""
    filled = int(np.bitwise_or.reduce(marks))
    return [name for number, name in enumerate(columns) if not filled >> min(number, _LAST_BIT) & 1]


def _numbered_label_notes(part: SourcePart, label: str) -> list[str]:
    """A note if the part's file has names for the numbers that are the classes."""
    table = part.part if isinstance(part, Partition) else part
    names = class_names(hub_features(table.schema()), label) if isinstance(table, ParquetRows) else None
    if not names:
        return []
    shown = ", ".join(f'{number} is "{name}"' for number, name in enumerate(names[:3]))
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return [f'the classes are the numbers in "{label}", for which the files have names: {shown}{more}']
