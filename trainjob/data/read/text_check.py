"""Detects files that should be text and are not."""

import codecs

from trainjob.errors import DataError


def check_text(head: bytes, uri: str) -> None:
    """Raises DataError if the file with this beginning is UTF-16 or binary."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head[:2]:
        raise DataError(f"{uri} is UTF-16 text: save the file in UTF-8")
    if b"\0" in head.partition(b"\n")[0]:
        raise DataError(
            f"{uri} is binary, not text: if it is compressed or Parquet, its name must say so, such as .csv.gz or "
            ".parquet"
        )
