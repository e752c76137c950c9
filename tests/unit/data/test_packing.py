"""Packed rows hold each token that is learned once, after just what came before it in its document."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainjob.data.batches.examples import IGNORED
from trainjob.kinds.causal_lm.packing import START, document_starts, next_tokens, pack, unpacked

PAD = 0


def texts(*lengths: int) -> tuple[np.ndarray, np.ndarray]:
    """Documents whose tokens, from 1, are all different."""
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    return np.arange(1, offsets[-1] + 1, dtype=np.int32), offsets


def rows_of(lengths: list[int], length: int) -> np.ndarray:
    """Codes of all rows, with -1 where there are no tokens."""
    codes, sizes = pack(*texts(*lengths), length)
    assert (sizes <= length).all()
    rows = np.full((len(sizes), length), -1, np.int32)
    rows[np.arange(length) < sizes[:, None]] = codes
    return rows


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(2, 16))
def test_each_token_is_predicted_once_from_the_one_before(lengths: list[int], length: int):
    rows = rows_of(lengths, length)
    (tokens, _), labels = unpacked(rows, PAD), next_tokens(rows)
    learned = labels != IGNORED
    assert (labels[learned] == tokens[learned] + 1).all()
    firsts = texts(*lengths)[1][:-1][np.array(lengths, int) > 0] + 1
    everything = range(1, sum(lengths) + 1)
    assert sorted(labels[learned].tolist()) == sorted(set(everything) - set(firsts.tolist()))


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(2, 16))
def test_positions_start_anew_with_each_document_and_in_padding(lengths: list[int], length: int):
    rows = rows_of(lengths, length)
    (tokens, positions), labels = unpacked(rows, PAD), next_tokens(rows)
    starts = (rows < 0) | (rows >= START)
    assert (positions[starts] == 0).all()
    going_on = ~starts[:, 1:]
    assert (positions[:, 1:][going_on] == positions[:, :-1][going_on] + 1).all()
    assert (tokens[rows < 0] == PAD).all()
    assert (labels[rows < 0] == IGNORED).all()


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(2, 16))
def test_a_row_is_cut_where_documents_and_padding_begin(lengths: list[int], length: int):
    rows = rows_of(lengths, length)
    starts = document_starts(rows)
    assert starts.dtype == np.int32
    for row, found in zip(rows, starts.tolist(), strict=True):
        pads = np.flatnonzero(row < 0)[:1].tolist()
        wanted = [*np.flatnonzero(row >= START).tolist(), *pads]
        assert found == wanted + [length] * (len(found) - len(wanted))


def test_short_documents_share_rows():
    assert (rows_of([5, 3, 4, 4, 6, 2], 8) >= 0).all()


@given(st.lists(st.integers(2, 16), min_size=1, max_size=60))
def test_no_two_rows_would_fit_into_one(lengths: list[int]):
    used = sorted(pack(*texts(*lengths), 16)[1].tolist())
    assert len(used) == 1 or used[0] + used[1] > 16


def test_a_longer_document_goes_on_from_the_last_token_of_the_piece_before():
    rows = rows_of([9], 8)
    (tokens, positions), labels = unpacked(rows, PAD), next_tokens(rows)
    assert tokens.tolist() == [[1, 2, 3, 4, 5, 6, 7, 8], [8, 9, *[PAD] * 6]]
    assert labels.tolist() == [[2, 3, 4, 5, 6, 7, 8, IGNORED], [9, *[IGNORED] * 7]]
    assert positions.tolist() == [list(range(8)), [0, 1, *[0] * 6]]


@pytest.mark.parametrize("lengths", [[], [0], [1], [0, 1, 1, 0]])
def test_documents_without_a_token_to_learn_make_no_rows(lengths: list[int]):
    assert rows_of(lengths, 8).shape == (0, 8)
