#!/usr/bin/env bash
# gensim trains on the first 10,000 words of a text only, though all of its words get into the vocabulary.
#
# Seen with: gensim 4.4.0, numpy 2.4.6, CPython 3.11.
#
# Word2Vec, Doc2Vec and FastText cut each text at 10,000 known words, without a word in the log. A book, or a corpus
# that is passed as one list of words, is read up to there, in every epoch. Words that come later are counted and have a
# vector, which is the random one of the start; nearest neighbors are found for it like for any other. Split into
# shorter texts, all words are learned.
#
# Output seen:
#   one text of 12,200 words: vectors learned: 100% of those before word 10,000, 0% of those after
#   texts of 1,000 words: vectors learned: 100% of those before word 10,000, 100% of those after
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check gensim==4.4.0 numpy==2.4.6

cat > train.py <<'PYTHON'
import numpy as np
from gensim.models import Word2Vec

EARLY, LATE = ["sun", "sky", "blue"], ["ore", "mine"]
book = EARLY * 3400 + LATE * 1000


def changed(texts):
    """The share of the words of `texts` whose vectors training changes, early ones and late ones."""
    model = Word2Vec(vector_size=8, min_count=1, sample=0, seed=1, workers=1)
    model.build_vocab(texts)
    before = model.wv.vectors.copy()
    model.train(texts, total_examples=len(texts), epochs=5)
    has_changed = (model.wv.vectors != before).any(axis=1)
    return [np.mean([has_changed[model.wv.key_to_index[word]] for word in words]) for words in (EARLY, LATE)]


shorter = [book[start : start + 1000] for start in range(0, len(book), 1000)]
for what, texts in ((f"one text of {len(book):,} words", [book]), ("texts of 1,000 words", shorter)):
    early, late = changed(texts)
    print(f"{what}: vectors learned: {early:.0%} of those before word 10,000, {late:.0%} of those after")
PYTHON

venv/bin/python train.py | tee found
diff seen found
