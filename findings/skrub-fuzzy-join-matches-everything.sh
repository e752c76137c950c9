#!/usr/bin/env bash
# skrub's fuzzy_join finds a match for every row: Atlantis gets the numbers of France, and "unknown" those of Chile.
#
# Seen with: skrub 0.11.0, pandas 3.0.6, scikit-learn 1.9.1, numpy 2.4.6, CPython 3.11.
#
# It is a left join by similar texts, and a left join leaves missing what has no partner. Here the nearest row is taken,
# however far, as max_dist is infinite unless set. Joiner, which puts the same into a pipeline, does so, too. A spelling
# mistake and a name that is not in the other table look alike in the result, and no missing value tells.
# add_match_info=True adds the distance of each match as a column.
#
# Output seen:
#   fuzzy_join: Germny with Germany, France with France, Atlantis with France, unknown with Chile
#   Joiner: Germny with Germany, France with France, Atlantis with France, unknown with Chile
#   max_dist=0.9: Germny with Germany, France with France, Atlantis with -, unknown with -
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check skrub==0.11.0 pandas==3.0.6 scikit-learn==1.9.1 numpy==2.4.6

cat > fuzzy.py <<'PYTHON'
import warnings

import pandas as pd
from skrub import Joiner, fuzzy_join

warnings.simplefilter("error", UserWarning)
names = pd.DataFrame({"country": ["Germny", "France", "Atlantis", "unknown"]})
known = pd.DataFrame({"country": ["Germany", "France", "Chile"], "gdp": [4.5, 3.0, 0.3]})


def say(what: str, joined: pd.DataFrame) -> None:
    matches = joined["country_2"].fillna("-")
    pairs = (f"{name} with {match}" for name, match in zip(joined["country"], matches, strict=True))
    print(f"{what}:", ", ".join(pairs))


say("fuzzy_join", fuzzy_join(names, known, on="country", suffix="_2"))
say("Joiner", Joiner(known, key="country", suffix="_2").fit_transform(names))
say("max_dist=0.9", fuzzy_join(names, known, on="country", suffix="_2", max_dist=0.9))
PYTHON

venv/bin/python fuzzy.py | tee found
diff seen found
