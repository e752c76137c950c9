#!/usr/bin/env bash
# The tokens that conllu reads from a French or German sentence hold each contraction and its parts: "du", "de", "le".
#
# Seen with: conllu 6.0.0, CPython 3.11.
#
# CoNLL-U has a line 1-2 for "du" as it is written, and lines 1 and 2 for the words that have tags; 3.1 is a word that
# is not in the text at all. All three are items of a sentence, and len() counts them. A list of forms with their upos,
# made as for English, repeats words and has tags "_", which becomes one of the classes; head, which counts lines 1, 2,
# 3, points to other items. Only items whose id is an int are words; the text is the items that no range of ids covers.
#
# Output seen:
#   text: du pain frais
#   6 items: du/_ de/ADP le/DET pain/NOUN acheter/VERB frais/ADJ
#   4 words: de/ADP le/DET pain/NOUN frais/ADJ
#   head of frais: 3; of the items le, of the words pain
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check conllu==6.0.0

cat > words.py <<'PYTHON'
import conllu

ROWS = [
    ("1-2", "du", "_", "_"),
    ("1", "de", "ADP", "3"),
    ("2", "le", "DET", "3"),
    ("3", "pain", "NOUN", "0"),
    ("3.1", "acheter", "VERB", "_"),
    ("4", "frais", "ADJ", "3"),
]
lines = ["\t".join((number, form, "_", tag, "_", "_", head, "_", "_", "_")) for number, form, tag, head in ROWS]
(sentence,) = conllu.parse("# text = du pain frais\n" + "\n".join(lines) + "\n\n")
print("text:", sentence.metadata["text"])
print(f"{len(sentence)} items:", *(f"{token['form']}/{token['upos']}" for token in sentence))
words = [token for token in sentence if isinstance(token["id"], int)]
print(f"{len(words)} words:", *(f"{token['form']}/{token['upos']}" for token in words))
head = sentence[-1]["head"]
print(f"head of frais: {head}; of the items {sentence[head - 1]['form']}, of the words {words[head - 1]['form']}")
PYTHON

venv/bin/python words.py | tee found
diff seen found
