"""Documents packed into rows of one length, which a language model learns from.

A row holds whole documents side by side. It is stored as one code for each token, from which `unpacked` makes a
model's inputs: positions start at 0 in each document and at each token of padding. They tell the model where a document
begins, so that it attends to nothing before it.
"""

from bisect import bisect_left, insort

import numpy as np

from trainjob.data.batches.examples import IGNORED, Examples
from trainjob.kinds.inputs.token_codes import FLAG_BIT, MAX_TOKENS, read_codes

GIVEN = 1 << FLAG_BIT
"""Added to the code of a token that is given and not a label, such as one of a prompt."""
START = 2 << FLAG_BIT
"""Added to the code of the first token of a document, or of a piece of one, which is not a label."""
FLAG_BITS = 2


def pack(tokens: np.ndarray, offsets: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Packs all documents by best-fit decreasing into rows of at most `length` tokens (2 or more). Returns the codes of
    all rows, one after the other, int32 [t], and the number of each row's codes, int64 [n]. The result depends only on
    the documents.

    Document `i` is `tokens[offsets[i] : offsets[i + 1]]`, of int32 and int64; GIVEN may be added to tokens. Longer
    documents are split. The last token of a piece is also the first of the next, whose tokens are predicted from it.
    Documents of one token teach nothing and are left out.
    """
    starts, lengths = _pieces(offsets, length)
    rows = _best_fit(lengths, length)
    order = np.argsort(rows, kind="stable")
    starts, lengths, rows = starts[order], lengths[order], rows[order]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    codes = tokens[np.repeat(starts, lengths) + within] + np.where(within == 0, START, 0).astype(np.int32)
    return codes, np.bincount(rows, lengths).astype(np.int64)


def code_matrix(examples: Examples, length: int) -> np.ndarray:
    """The codes of packed rows, int32 [n, length], -1 where there are no tokens."""
    return _padded(read_codes(examples.values, FLAG_BITS), examples.lengths, length, -1)


def label_matrix(examples: Examples, length: int) -> np.ndarray:
    """The labels of packed rows, int64 [n, length], as `next_tokens` returns them. No row's label is the next row's
    token: each row begins with the first token of a document."""
    return _padded(next_tokens(read_codes(examples.values, FLAG_BITS)), examples.lengths, length, IGNORED)


def _padded(values: np.ndarray, lengths: np.ndarray, length: int, padding: int) -> np.ndarray:
    """Rows of `lengths` values, one after the other, as a matrix [n, length]."""
    matrix = np.full((len(lengths), length), padding, values.dtype)
    matrix[np.arange(length) < lengths[:, None]] = values
    return matrix


def unpacked(codes: np.ndarray, pad: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and their positions, both int64 [n, length], of codes int32 [n, length] that are -1 where there are no
    tokens; `pad` is the token at those positions."""
    is_pad = codes < 0
    starts = is_pad | (codes >= START)
    tokens = np.where(is_pad, pad, codes & (MAX_TOKENS - 1)).astype(np.int64)
    indices = np.broadcast_to(np.arange(codes.shape[1]), codes.shape)
    positions = indices - np.maximum.accumulate(np.where(starts, indices, 0), axis=1)
    return tokens, positions


def next_tokens(codes: np.ndarray) -> np.ndarray:
    """The label of each position, int64 [..., length], of codes as for `unpacked`: the token that follows in the
    document, or IGNORED where that is only read."""
    labels = np.full(codes.shape, IGNORED, np.int64)
    following = codes[..., 1:]
    is_learned = (following >= 0) & (following & (START | GIVEN) == 0)
    labels[..., :-1] = np.where(is_learned, following, IGNORED)
    return labels


def document_starts(codes: np.ndarray) -> np.ndarray:
    """The start of each document in each row, from codes int32 [n, length] as for `unpacked`: int32 [n, d], padded with
    `length`. The space after the last document counts as a document."""
    is_pad, begins = codes < 0, codes >= START
    begins[:, 1:] |= is_pad[:, 1:] & ~is_pad[:, :-1]
    begins[:, 0] = True
    counts = begins.sum(axis=1)
    starts = np.full((len(codes), counts.max(initial=1)), codes.shape[1], np.int32)
    starts[np.arange(starts.shape[1]) < counts[:, None]] = np.nonzero(begins)[1]
    return starts


def _pieces(offsets: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """The start of each piece among the tokens, and its length, both int64 [p]."""
    sizes = np.diff(offsets)
    counts = np.maximum(-(-(sizes - 1) // (length - 1)), 0)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(offsets[:-1], counts) + number * (length - 1)
    return starts, np.minimum(starts + length, np.repeat(offsets[1:], counts)) - starts


def _best_fit(lengths: np.ndarray, capacity: int) -> np.ndarray:
    """The row of each piece, int64 [p]: the longest come first, and each goes into the row where it leaves the least
    space."""
    rows = np.empty(len(lengths), np.int64)
    open_rows: list[tuple[int, int]] = []  # (room, row), sorted
    used = 0
    for piece in np.argsort(-lengths, kind="stable").tolist():
        size = int(lengths[piece])
        at = bisect_left(open_rows, (size, 0))
        if at < len(open_rows):
            room, row = open_rows.pop(at)
        else:
            room, row, used = capacity, used, used + 1
        rows[piece] = row
        if room - size >= 2:  # no piece is shorter
            insort(open_rows, (room - size, row))
    return rows
