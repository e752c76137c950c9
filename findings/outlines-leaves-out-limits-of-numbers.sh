#!/usr/bin/env bash
# outlines-core makes a pattern without the limits of a JSON schema: a rating "from 1 to 5" may be -7, and is valid.
#
# Seen with: outlines-core 0.2.14, jsonschema 4.26.0, CPython 3.11.
#
# A language model that is held to a schema cannot answer anything that breaks it, which is why the answer need not be
# checked. The pattern is made without minimum, maximum, exclusiveMinimum, multipleOf and uniqueItems. These keywords
# are accepted without an error or a warning; minLength, maxItems and enum are kept. Limits of numbers can be written as
# an enum, and the answer must be validated nonetheless.
#
# Output seen:
#   {"type": "integer", "minimum": 1, "maximum": 5}: -7 fits the pattern True, the schema False
#   {"type": "number", "exclusiveMinimum": 0}: -0.5 fits the pattern True, the schema False
#   {"type": "integer", "multipleOf": 10}: 7 fits the pattern True, the schema False
#   {"type": "array", "items": {"type": "integer"}, "uniqueItems": true}: [7,7] fits the pattern True, the schema False
#   {"type": "array", "items": {"type": "integer"}, "maxItems": 1}: [7,7] fits the pattern False, the schema False
#   {"type": "string", "maxLength": 2}: "abc" fits the pattern False, the schema False
#
# Fails if any of these lines differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
sed -n '/^# Output seen:/,/^#$/s/^#   //p' "$0" > "$folder/seen"
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check outlines-core==0.2.14 jsonschema==4.26.0

cat > limits.py <<'PYTHON'
import json
import re

import jsonschema
from outlines_core.json_schema import build_regex_from_schema

for schema, answer in (
    ({"type": "integer", "minimum": 1, "maximum": 5}, "-7"),
    ({"type": "number", "exclusiveMinimum": 0}, "-0.5"),
    ({"type": "integer", "multipleOf": 10}, "7"),
    ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "[7,7]"),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 1}, "[7,7]"),
    ({"type": "string", "maxLength": 2}, '"abc"'),
):
    allowed = re.fullmatch(build_regex_from_schema(json.dumps(schema)), answer) is not None
    valid = jsonschema.Draft202012Validator(schema).is_valid(json.loads(answer))
    print(f"{json.dumps(schema)}: {answer} fits the pattern {allowed}, the schema {valid}")
PYTHON

venv/bin/python limits.py | tee found
diff seen found
