"""Cleans texts before they are tokenized, in training and prediction alike."""

import html
import re
import unicodedata

from trainjob.api import Cleaning

_TAG = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>]*>|<![a-zA-Z][^<>]*>", re.DOTALL)
_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters (Unicode category Cc) that are not white space."""


def clean(text: str, cleaning: Cleaning) -> str:
    """Unicode in its composed form (NFC), no control characters, each run of white space one blank; and as asked."""
    if cleaning.remove_html:
        text = html.unescape(_TAG.sub(" ", text))
    if cleaning.remove_urls:
        text = _URL.sub(" ", text)
    if not text.isprintable():
        text = _CONTROL.sub("", text)
    if cleaning.lowercase:
        text = text.lower()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split())
