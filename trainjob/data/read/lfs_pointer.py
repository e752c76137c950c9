"""Detects Git LFS pointers: small texts instead of files that were not downloaded."""

POINTER = "a Git LFS pointer, not the file itself"
POINTER_ADVICE = "fetch the files with `git lfs pull`"
POINTER_BYTES = 1024
"""The specification's limit: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md"""


def is_pointer(content: bytes) -> bool:
    """Whether a file with this beginning is a pointer."""
    return content.startswith(b"version https://git-lfs.github.com/spec/v1\n")
