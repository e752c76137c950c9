"""Files that `hack/generate.py` derives."""

from generate import generated


def test_the_derived_files_are_up_to_date():
    for path, text in generated():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make generate`"
