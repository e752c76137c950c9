#!/usr/bin/env bash
# Whisper's normalizer drops the vowels of Hindi, Tamil or Thai: a wrong word then has a word error rate of 0.
#
# Seen with: whisper-normalizer 0.1.15, jiwer 4.0.0, CPython 3.11.
#
# Word error rates of speech models are computed on texts that BasicTextNormalizer has prepared. Punctuation and symbols
# become blanks there, and so do Unicode's marks. In Latin letters a mark is mostly one character with its letter. In
# Indic scripts and Thai, marks are vowels and tones: a word falls apart into letters, each of which counts as a word,
# and words that differ in vowels only are equal. Models look better than they are. remove_diacritics=False, the
# default, does not keep them.
#
# Output seen:
#   Hindi: word error rate 1, normalized 0, the reference then has 2 words
#   Tamil: word error rate 1, normalized 0, the reference then has 2 words
#   Thai: word error rate 1, normalized 0, the reference then has 2 words
#   German: word error rate 1, normalized 1, the reference then has 1 words
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check whisper-normalizer==0.1.15 jiwer==4.0.0

cat > vowels.py <<'PYTHON'
import jiwer
from whisper_normalizer.basic import BasicTextNormalizer

normalize = BasicTextNormalizer()
for language, reference, heard in (
    ("Hindi", "दिन", "दान"),
    ("Tamil", "மாலை", "மூலை"),
    ("Thai", "เสื้อ", "เสือ"),
    ("German", "schön", "schon"),
):
    rates = [jiwer.wer(reference, heard), jiwer.wer(normalize(reference), normalize(heard))]
    print(f"{language}: word error rate {rates[0]:.0f}, normalized {rates[1]:.0f}", end="")
    print(f", the reference then has {len(normalize(reference).split())} words")
PYTHON

venv/bin/python vowels.py | tee found
diff seen found
