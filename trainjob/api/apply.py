"""The body of a server-side apply."""

import json
import re
from collections.abc import Mapping
from typing import Any

APPLY = "application/apply-patch+yaml; charset=utf-8"
"""The content type of the body."""

_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that YAML accepts only in escaped form."""


def as_yaml(body: Mapping[str, Any]) -> str:
    """JSON that is also valid YAML: JSON escapes characters beyond U+FFFF as surrogate pairs, which YAML rejects."""
    text = json.dumps(body, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda character: f"\\u{ord(character[0]):04x}", text)
