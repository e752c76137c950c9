#!/usr/bin/env bash
# rank_bm25's BM25Okapi may rank texts without the word before those that have it, if most words are common.
#
# Seen with: rank-bm25 0.2.2, bm25s 0.3.16, numpy 2.4.6, CPython 3.11.
#
# The formula's weight of a word is negative if more than half of the texts have it, and 0 for exactly half. rank_bm25
# replaces what is negative by a quarter of the mean weight of all words, which is itself negative if most words are
# common, as in the answers to one topic, or passages of one document. A search, and hard negatives that are mined by
# it, then come from the wrong end. BM25Plus, and bm25s with its default, take a logarithm that stays positive.
#
# Output seen:
#   car, in 3 of 4:
#     rank_bm25, BM25Okapi: red bus 0.00, red car bus -0.05, red car -0.06, blue car -0.06
#     rank_bm25, BM25Plus: red car 1.05, blue car 1.05, red car bus 0.96, red bus 0.51
#     bm25s: red car 0.15, blue car 0.15, red car bus 0.12, red bus 0.00
#   key, in 2 of 4:
#     rank_bm25, BM25Okapi: new key 0.00, new door 0.00, old key 0.00, old window 0.00
#     rank_bm25, BM25Plus: new key 1.83, old key 1.83, new door 0.92, old window 0.92
#     bm25s: new key 0.28, old key 0.28, new door 0.00, old window 0.00
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rank-bm25==0.2.2 bm25s==0.3.16 numpy==2.4.6

cat > search.py <<'PYTHON'
import bm25s
import rank_bm25


def say(texts: list[str], query: str) -> None:
    split = [text.split() for text in texts]
    print(f"{query}, in {sum(query in words for words in split)} of {len(texts)}:")
    for name in ("BM25Okapi", "BM25Plus"):
        show(f"rank_bm25, {name}", texts, getattr(rank_bm25, name)(split).get_scores([query]))
    index = bm25s.BM25()
    index.index(split, show_progress=False)
    show("bm25s", texts, index.get_scores([query]))


def show(what: str, texts: list[str], scores) -> None:
    ranked = sorted(zip(scores, texts, strict=True), key=lambda pair: -pair[0])
    print(f"  {what}:", ", ".join(f"{text} {score:.2f}" for score, text in ranked))


say(["red car", "red bus", "blue car", "red car bus"], "car")
say(["new key", "new door", "old key", "old window"], "key")
PYTHON

venv/bin/python search.py | tee found
diff seen found
