"""Pointers of Git LFS: small texts in the place of files that have not been fetched."""

POINTER = "a Git LFS pointer, not the file that it stands for"
POINTER_ADVICE = "fetch the files with `git lfs pull`"
POINTER_BYTES = 1024
"""The specification's limit: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md"""


def is_pointer(content: bytes) -> bool:
    """Whether the beginning of a file is that of a pointer."""
    return content.startswith(b"version https://git-lfs.github.com/spec/v1\n")
